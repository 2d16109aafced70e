"""The only source of the random choices on which privacy claims depend.

* ``source.py`` has the interface :class:`~app.noise.source.NoiseSource` (random 64-bit
  words, integers below a bound, permutations, secrets). It also has the functions that turn words
  of any source into integers and permutations.
* ``system.py`` has the source that serves a release: the operating system's random generator.
* ``scripted.py`` has a source for unit tests, which returns given words.
* ``exact_choice.py`` draws one of several alternatives, given the logs of their weights.
* ``discrete_laplace.py`` and ``discrete_gaussian.py`` draw integers from the distributions of these
  names.
"""
