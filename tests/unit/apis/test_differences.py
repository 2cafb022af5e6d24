"""What a refused change of something fixed shows."""

from __future__ import annotations

from fastapi_core.apis.validation.differences import difference

CLAIM = "core/v1.PersistentVolumeClaimSpec"
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"}
CLASS_LINES = """\
@@ -10,7 +10,7 @@
   }
  },
  "VolumeName": "",
- "StorageClassName": null,
+ "StorageClassName": "\\u003cfast\\u003e",
  "VolumeMode": "Filesystem",
  "DataSource": null,
  "DataSourceRef": null,
"""
SOURCE_LINES = """\
@@ -1,7 +1,3 @@
 {
- "NFS": {
-  "Server": "s",
-  "Path": "/a",
-  "ReadOnly": false
- }
+ "NFS": null
 }
"""


def test_lines_that_differ_with_three_around_them() -> None:
    assert difference(CLAIM, SPEC, {**SPEC, "storageClassName": "<fast>"}) == CLASS_LINES
    assert difference(CLAIM, SPEC, SPEC) == ""


def test_some_members_only() -> None:
    before, after = {"nfs": {"server": "s", "path": "/a"}, "storageClassName": "a"}, {"storageClassName": "b"}
    assert difference("core/v1.PersistentVolumeSpec", before, after, ("nfs",)) == SOURCE_LINES
