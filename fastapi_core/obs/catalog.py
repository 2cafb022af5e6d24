"""Every metric of the server, declared once: name, labels, buckets and stability as the reference has them.

`Metrics` belongs to one server; layers that count something get it (or a child of it) handed in.
"""

from __future__ import annotations

from fastapi_core.obs.metrics import Registry

_SECONDS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_SLI_SECONDS = _SECONDS[2:]
_ADMISSION_SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5)
_RESPONSE_BYTES = tuple(1000 * 10**n for n in range(7))
_EVENT_BYTES = tuple(1024 * 2**n for n in range(8))
_BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_REQUEST = ("verb", "group", "version", "resource", "subresource", "scope", "component")


class Metrics:
    """The families of one server and the registry that prints them."""

    def __init__(self) -> None:
        self.registry = Registry()
        self._requests(self.registry)
        self._gates(self.registry)
        self._audit(self.registry)
        self._stores(self.registry)
        self._process(self.registry)

    def _requests(self, registry: Registry) -> None:
        counter, gauge, histogram = registry.counter, registry.gauge, registry.histogram
        dry_run = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
        self.request_total = counter(
            "apiserver_request_total", "Requests answered, by what they asked for and the HTTP code.",
            (*dry_run, "code"), stability="STABLE",
        )  # fmt: skip
        self.request_duration = histogram(
            "apiserver_request_duration_seconds", "Seconds from the request head to the answer, without watches.",
            dry_run, buckets=_SECONDS, stability="STABLE",
        )  # fmt: skip
        self.request_sli_duration = histogram(
            "apiserver_request_sli_duration_seconds", "Seconds from the request head to the answer, without webhooks.",
            _REQUEST, buckets=_SLI_SECONDS,
        )  # fmt: skip
        self.response_sizes = histogram(
            "apiserver_response_sizes", "Bytes of the answers to reads.",
            _REQUEST, buckets=_RESPONSE_BYTES, stability="STABLE",
        )  # fmt: skip
        self.longrunning = gauge(
            "apiserver_longrunning_requests", "Watches and other long-running requests under way.",
            _REQUEST, stability="STABLE",
        )  # fmt: skip
        self.inflight = gauge(
            "apiserver_current_inflight_requests", "Requests that count against the limits, by kind.",
            ("request_kind",), stability="STABLE",
        )  # fmt: skip
        self.terminations = counter(
            "apiserver_request_terminations_total", "Requests the server ended itself, to protect itself.",
            (*_REQUEST, "code"),
        )  # fmt: skip
        self.aborts = counter(
            "apiserver_request_aborts_total", "Requests cut off before their answer was complete.", _REQUEST[:-1]
        )
        self.deprecated = gauge(
            "apiserver_requested_deprecated_apis", "Deprecated API versions somebody asked for.",
            ("group", "version", "resource", "subresource", "removed_release"), stability="STABLE",
        )  # fmt: skip

    def _gates(self, registry: Registry) -> None:
        counter, histogram = registry.counter, registry.histogram
        self.authentication_attempts = counter("authentication_attempts", "Authentications by result.", ("result",))
        self.legacy_token_uses = {
            kind: counter(f"serviceaccount_{name}_total", f"Uses of service account tokens in secrets that are {text}.")
            for kind, name, text in (
                ("auto", "legacy_auto_token_uses", "generated"),
                ("manual", "legacy_manual_token_uses", "written by hand"),
                ("invalid", "invalid_legacy_auto_token_uses", "marked invalid"),
            )
        }
        self.authorization_attempts = counter("authorization_attempts_total", "Authorizations by result.", ("result",))

        step = ("type", "operation", "rejected")
        self.admission_steps = histogram(
            "apiserver_admission_step_admission_duration_seconds", "Seconds of each phase of admission.",
            step, buckets=_ADMISSION_SECONDS, stability="STABLE",
        )  # fmt: skip
        self.admission_plugins = histogram(
            "apiserver_admission_controller_admission_duration_seconds", "Seconds of each admission plugin.",
            ("name", *step), buckets=_ADMISSION_SECONDS, stability="STABLE",
        )  # fmt: skip
        self._webhooks(registry)
        found = ("policy", "policy_binding", "error_type", "enforcement_action")
        self.policy_checks = counter(
            "apiserver_validating_admission_policy_check_total", "What validating policies found, by what came of it.",
            found, stability="BETA",
        )  # fmt: skip
        self.policy_seconds = histogram(
            "apiserver_validating_admission_policy_check_duration_seconds", "Seconds it took to find it.",
            found, buckets=(0.0000005, 0.001, 0.01, 0.1, 1.0), stability="BETA",
        )  # fmt: skip
        requested = ("request_operation", "resource", "subresource")
        self.pod_security_evaluations = counter(
            "pod_security_evaluations_total", "Judgements of pods by a policy, without what is exempt.",
            ("decision", "policy_level", "policy_version", "mode", *requested, "ocp_namespace"),
        )  # fmt: skip
        self.pod_security_exemptions = counter(
            "pod_security_exemptions_total", "Requests that are exempt from the policies for pods.", requested
        )
        self.pod_security_errors = counter(
            "pod_security_errors_total", "Failures to find out the policy for a pod.", ("fatal", *requested)
        )

    def _webhooks(self, registry: Registry) -> None:
        counter, histogram = registry.counter, registry.histogram
        called = ("name", "type", "operation")
        self.webhook_duration = histogram(
            "apiserver_admission_webhook_admission_duration_seconds", "Seconds of each call of a webhook.",
            (*called, "rejected"), buckets=(*_ADMISSION_SECONDS, 10, 25), stability="STABLE",
        )  # fmt: skip
        self.webhook_requests = counter(
            "apiserver_admission_webhook_request_total", "Calls of webhooks by HTTP code.",
            (*called, "code", "rejected"),
        )  # fmt: skip
        self.webhook_rejections = counter(
            "apiserver_admission_webhook_rejection_count", "Requests refused by webhooks or because of them.",
            (*called, "error_type", "rejection_code"),
        )  # fmt: skip
        self.webhook_fail_open = counter(
            "apiserver_admission_webhook_fail_open_count", "Failed calls of webhooks that requests went on without.",
            ("name", "type"),
        )  # fmt: skip
        conditions = ("name", "kind", "type", "operation")
        self.condition_errors = counter(
            "apiserver_admission_match_condition_evaluation_errors_total", "Match conditions that failed.", conditions
        )
        self.condition_exclusions = counter(
            "apiserver_admission_match_condition_exclusions_total", "Requests that met not all match conditions.",
            conditions,
        )  # fmt: skip
        self.condition_seconds = histogram(
            "apiserver_admission_match_condition_evaluation_seconds", "Seconds of evaluating match conditions.",
            conditions, buckets=(0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
        )  # fmt: skip

    def _audit(self, registry: Registry) -> None:
        counter = registry.counter
        self.audit_events = counter("apiserver_audit_event_total", "Audit events given to the backends.")
        self.audit_errors = counter(
            "apiserver_audit_error_total", "Audit events that were lost, by the part that lost them.", ("plugin",)
        )
        self.audit_levels = counter("apiserver_audit_level_total", "Requests judged by the audit policy.", ("level",))
        self.audit_rejected = counter(
            "apiserver_audit_requests_rejected_total", "Requests refused because their audit event was not kept."
        )

    def _stores(self, registry: Registry) -> None:
        counter, gauge, histogram = registry.counter, registry.gauge, registry.histogram
        watched = ("group", "version", "resource")
        self.watch_events = counter("apiserver_watch_events_total", "Watch events sent.", watched)
        self.watch_event_sizes = histogram(
            "apiserver_watch_events_sizes", "Bytes of the watch events sent.", watched, buckets=_EVENT_BYTES
        )
        cached = ("group", "resource")
        self.terminated_watchers = counter(
            "apiserver_terminated_watchers_total", "Watchers closed because their client read too slowly.", cached
        )
        self.stream_backlog = gauge(
            "fastapi_core_stream_backlog_bytes", "Bytes that watches and other streams owe clients that are behind."
        )
        self.streams_cut = counter(
            "fastapi_core_streams_cut_total", "Streams cut because all of them together owed too much."
        )
        self.resource_objects = gauge("apiserver_resource_objects", "Objects stored, by resource.", cached)
        self.storage_objects = gauge(
            "apiserver_storage_objects", "Objects stored, by resource.", ("resource",), stability="STABLE"
        )
        self.storage_size = gauge(
            "apiserver_storage_size_bytes", "Bytes of the storage file.", ("storage_cluster_id",), stability="STABLE"
        )
        self.commit_batch = histogram(
            "fastapi_core_storage_commit_batch_size", "Writes taken together in one commit.", buckets=_BATCH
        )

    def _process(self, registry: Registry) -> None:
        counter, gauge = registry.counter, registry.gauge
        checks = ("name", "type")
        self.healthcheck = gauge(
            "kubernetes_healthcheck", "Last result of a health check, 1 is healthy.", checks, stability="STABLE"
        )
        self.healthchecks = counter(
            "kubernetes_healthchecks_total", "Runs of health checks by result.", (*checks, "status"), stability="STABLE"
        )
        self.build_info = gauge(
            "kubernetes_build_info", "Always 1; the labels say what was built.",
            (
                "major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler",
                "platform",
            ),
            stability="BETA",
        )  # fmt: skip

    def slis(self) -> bytes:
        """The exposition of `/metrics/slis`: the health checks, and since when they count."""
        start = self.registry.families.get("process_start_time_seconds")
        lines = [*self.healthcheck.expose(), *self.healthchecks.expose(), *(start.expose() if start else ())]
        return ("\n".join(lines) + "\n").encode() if lines else b""
