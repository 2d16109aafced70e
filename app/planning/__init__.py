"""Planning: predict the parameters and answers of a release without reading private rows.

* ``from_settings.py`` turns settings into a planning request, which ``request.py`` defines.
* ``plan.py`` makes the plan: every parameter of a release, whether the release can work, and
  advice.
* ``plan_result.py`` defines the part of a plan that concerns answers, for every mechanism.
* ``capacity.py`` computes the number of answers if a given fraction of the models agrees.
* ``variants.py`` computes the number of answers if epsilon, the cutoff T or the number of rows is
  changed.
* ``curves.py`` computes the curves of ``conclave plan --plot`` from these changes.
* ``mechanisms/`` plans each answering mechanism, ``trial/`` predicts answers by training models on
  made-up records, and ``output/`` writes plans and predictions as documents and sentences.
"""
