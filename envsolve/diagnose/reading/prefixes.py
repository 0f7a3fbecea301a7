r"""What a logger or a service writes before each line: ``vllm-1  | (Worker pid=7) ERROR 05-01 12:00:00 [core.py:70] ``.

Prefixes are removed in whatever order they stand, so that patterns see the line of the program and no value has a
prefix in it. The file of a C++ log (``gpu_device.cc:2344]``) is part of the line.
"""

from __future__ import annotations

import re
from functools import cache

_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_STAMP = rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]{_TIME}(?:Z| ?[+-]\d\d:?\d\d)?"
_DAY = r"[A-Z][a-z]{2} [ \d]\d"
_HASH = "[bcdf-hj-np-tv-xz2456789]"
"""Kubernetes makes no words: https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go."""
_BEFORE_A_SPACE = (
    r"[\w.-]++(?:(?<=[-_]\d)|(?<=[-_]\d\d)) ++\|",  # docker compose
    r"[\w.-]++ {2,}\|(?= +\S+ [^|]+$)",  # of a named container; tables have more columns, or single words
    r"\[pod/[^\]\s]{1,200}\]",  # kubectl logs --prefix
    rf"[\w.-]{{1,60}}-{_HASH}{{6,10}}-{_HASH}{{5}} [\w.-]++(?: [\u203a|])?",  # stern
    rf"{_STAMP} std(?:out|err) [FP]",  # the container runtimes of Kubernetes
    rf"(?:<\d+>)?(?:{_DAY} {_TIME}|{_STAMP}) \S{{1,80}} (?:kernel|[\w@./-]{{1,80}}\[\d+\]):",  # journald, syslog
    rf"\[(?: *\d+\.\d{{6}}|[A-Z][a-z]{{2}} {_DAY} {_TIME} \d{{4}})\]",  # dmesg
    rf"{_STAMP} \d\d[OE]",  # GitLab
    rf"\[?{_STAMP}\]?(?: \| [A-Z]+ +\| \S+ -| ?[:,|-])?",
    rf"\[(?:\d\d/\d\d/\d{{4}}-)?{_TIME}\](?:[WEi]:)?|{_TIME}",
    r"#\d+ \d+\.\d+",  # docker build
    r"[IWEF]\d{4} (?:\d\d:){2}\d+\.\d+ +\d+(?= \S+:\d+\])",  # glog, klog
    rf"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d {_TIME}(?: \[?[\w./]+\.py:\d+\])?",  # vLLM
    r"\((?:[\w.:-]+ )?(?:\w+=\w+ )*pid=\d+[^)]{0,60}\)",  # vLLM, Ray
    r"\[rank\d+\]:",  # torchrun
)
_WITHOUT_ONE = (
    r"""\{"log": ?\"""",  # the JSON of Docker
    rf"(?=[^Z]{{1,160}}Z ).{{1,120}}? (?=\d{{4}}-\d\d-\d\dT{_TIME}Z )(?=.{{27}}Z)",  # gh run view --log: job and step
    rf"{_STAMP} \d\d[OE]\+",  # GitLab, of a line that goes on
    r"##\[\w+\]|::(?:error|warning|notice)[^:]{0,200}::",  # GitHub, Azure
    r"\[default\d+\]:",  # torchrun
)


def without_prefixes(line: str) -> str:
    """``line`` as the program wrote it; as it is where nothing would remain."""
    found = _prefixes().match(line)
    return line[found.end() :] if found is not None and found.end() < len(line) else line


@cache
def _prefixes() -> re.Pattern[str]:
    return re.compile(rf"(?: *(?:{'|'.join(_WITHOUT_ONE)}|(?:{'|'.join(_BEFORE_A_SPACE)})(?: |$)))+")
