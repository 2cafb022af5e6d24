"""Build of the compiled modules: one table of extensions, their flags and the debug switch.

Sources (`.pyx`) live in `_ext/`; their headers (`.pxd`, `.pyi`) live in `fastapi_core/_ext/`, where the built modules land.
With a `.pxd` beside the `.pyx` in a top-level `_ext/`, Cython would silently ignore it.
`FASTAPI_CORE_DEBUG=1` builds with assertions, symbols and checks for undefined behaviour.
"""

import os

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

DEBUG = os.environ.get("FASTAPI_CORE_DEBUG") == "1"

MODULES = [
    "defaulting",  # defaults filled into objects in place
    "fieldset",  # sets of owned fields, and walks along shapes
    "http1",  # HTTP/1.1 server protocol
    "jsonscan",  # duplicate keys and limits of JSON bodies
    "objects",  # cached objects, list assembly, watch frames
    "protoread",  # protobuf messages to object trees
    "protowire",  # plans of protobuf messages
    "protowrite",  # object trees to protobuf messages
    "reqinfo",  # request path and query to RequestInfo
    "router",  # path trie
    "selector",  # label and field selector matching over cached objects
    "structwalk",  # walks along structural schemas: anything to prune, defaults, checks of containers
    "typed",  # type-table driven normalisation of object trees
]

#: Undefined behaviour (overflow, wild shifts, misalignment) ends the process at the place.
SANITIZE = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]

COMPILE = ["-Wall", "-Wsign-compare", "-Wno-unreachable-code", "-fvisibility=hidden"]
COMPILE += ["-O1", "-g3", "-UNDEBUG", *SANITIZE] if DEBUG else ["-O2", "-g0"]

Options.warning_errors = True

extensions = [
    Extension(
        f"fastapi_core._ext.{name}",
        [f"_ext/{name}.pyx"],
        extra_compile_args=COMPILE,
        extra_link_args=SANITIZE if DEBUG else [],
    )
    for name in MODULES
    if os.path.exists(f"_ext/{name}.pyx")
]

setup(
    ext_modules=cythonize(
        extensions,
        nthreads=0,
        include_path=["."],
        compile_time_env=None,
        compiler_directives={
            "language_level": "3",
            "binding": False,
            "embedsignature": False,
            "linetrace": False,
        },
    ),
)
