"""The source of all random choices on which privacy claims rest: the system's generator.

* ``source.py`` has the interface :class:`~app.noise.source.NoiseSource`: words, integers below a
  bound, permutations, secrets.  It also makes integers and permutations of any source's words.
* ``system.py`` is the one that serves: the operating system's generator.
* ``scripted.py`` is a double for tests, which plays given words back.
* ``exact_choice.py`` draws one of several alternatives by their log weights.
* ``discrete_laplace.py`` and ``discrete_gaussian.py`` draw integers by these laws.
"""
