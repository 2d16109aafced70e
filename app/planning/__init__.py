"""Planning: predict the parameters and answers of a release without reading private rows.

* ``from_settings.py`` makes a request of settings; ``request.py`` is that request.
* ``plan.py`` plans: every parameter of a release, whether it can work, and advice.
* ``plan_result.py`` has the fields of a plan on its answers, whichever mechanism gives them.
* ``capacity.py`` calculates how many answers there are if learners agree to a given share.
* ``variants.py`` calculates the same with one number changed: epsilon, T or rows.
* ``curves.py`` has the series of these changes for ``conclave plan --plot``.
* ``mechanisms/`` plans each mechanism, ``trial/`` predicts answers by fitting learners on made-up
  records, and ``output/`` writes both as documents and sentences.
"""
