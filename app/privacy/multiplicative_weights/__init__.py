"""The statistics table: for each rule of a public class, a noisy count of the rows it labels 1.

A rule gives each row the label 0 or 1, and the table is published once. It is drawn by private
multiplicative weights: all counts are first estimated, and the estimates that are most wrong are
corrected by noisy counts of rows.

* ``mechanism.py`` draws the table.
* ``calibration.py`` finds the size of the noise, the number of corrections, and the error above
  which an estimate is corrected.
"""
