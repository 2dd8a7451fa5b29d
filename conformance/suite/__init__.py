"""The gate as a pytest suite: ``pytest --pyargs kipcheck.conformance.suite --kipcheck-target kafka-python``.

Or in a project's own tests, with the targets in the ini file (``kipcheck_target = cmd:./my-testee``)::

    def test_conformance(kipcheck_item):
        kipcheck_item.hold()

One item for each target, check and subject (a message at all its versions, an assignor, a machine).
"""
