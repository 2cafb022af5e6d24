"""Feature gates: `--feature-gates`, the names the reference knows and what they are set to.

Most gates guard something that is always on or never there; setting those away from their default is worth a notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from fastapi_core.records import dataclass

_BETA_ON = """
    APIResponseCompression APIServerIdentity AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
    CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
    ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity DRADeviceBindingConditions
    DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
    DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
    GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
    InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
    PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
    PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
    StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
    WatchListClient WindowsGracefulNodeShutdown
"""
_BETA_OFF = """
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
    DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
    PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
"""
_ALPHA = """
    APIServingWithRoutine CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
    ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ContainerStopSignals ControllerManagerReleaseLeaderElectionLockOnExit
    CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
    LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RouteExternalCertificate
    RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StoragePerformantSecurityPolicy
    StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling
    WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob
"""
#: Not shown by --help any more, and locked; kept so that command lines of older releases start.
_LOCKED_ON = """
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache CRDValidationRatcheting ConsistentListFromCache
    CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
    DynamicResourceAllocation ExternalServiceAccountTokenSigner InPlacePodVerticalScaling MultiCIDRServiceAllocator
    OrderedNamespaceDeletion PodObservedGenerationTracking ResilientWatchCacheInitialization RetryGenerateName
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenPodNodeInfo
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    VolumeAttributesClass
"""
_GA_ON = "MutatingAdmissionPolicy"
_DEPRECATED_ON = "StorageNamespaceIndex"
_DEPRECATED_OFF = "DeclarativeValidationTakeover KMSv1"
_LOCKED_OFF = "SeparateCacheWatchRPC"
#: Every alpha and every beta gate at once, before the ones that are named.
_ALL = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


class GateError(ValueError):
    """A gate that cannot be set so; the text is the reference's."""


@dataclass(frozen=True, slots=True)
class Gate:
    default: bool
    stage: str
    """ALPHA, BETA, DEPRECATED or empty for what is generally available, as the metric says it."""
    locked: bool = False


def _table() -> dict[str, Gate]:
    found: dict[str, Gate] = {}
    for names, gate in (
        (_BETA_ON, Gate(True, "BETA")),
        (_BETA_OFF, Gate(False, "BETA")),
        (_ALPHA, Gate(False, "ALPHA")),
        (_LOCKED_ON, Gate(True, "", locked=True)),
        (_GA_ON, Gate(True, "")),
        (_DEPRECATED_ON, Gate(True, "DEPRECATED")),
        (_DEPRECATED_OFF, Gate(False, "DEPRECATED")),
        (_LOCKED_OFF, Gate(False, "DEPRECATED", locked=True)),
    ):
        found |= dict.fromkeys(names.split(), gate)
    return found


_ACTING = """
    ClusterTrustBundle ComponentFlagz ComponentStatusz GenericWorkload PodCertificateRequest StorageVersionMigrator
"""
ACTING = frozenset(_ACTING.split())
"""Gates that change something here."""

KNOWN: Mapping[str, Gate] = _table()
_COMPONENTS = frozenset({"", "kube"})


@dataclass(frozen=True, slots=True)
class Gates:
    """What the gates are set to; `given` holds those that are away from their default."""

    given: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """KeyError for a name nobody knows."""
        known = KNOWN[name]
        return self.given.get(name, known.default)


def parse(pairs: Iterable[tuple[str, str]]) -> Gates:
    """Gates from `name=bool` pairs, where a name may be preceded by its component (`kube:`). Raises GateError.

    As in the reference, AllAlpha and AllBeta come first wherever they stand, and only move gates that are not named.
    """
    wanted: dict[str, bool] = {}
    for name, text in pairs:
        component, colon, gate = name.rpartition(":")
        if colon and component not in _COMPONENTS:
            raise GateError(f"component not registered: {component}")
        if text not in ("true", "false", "True", "False", "TRUE", "FALSE", "1", "0", "t", "f", "T", "F"):
            raise GateError(f'invalid value of {gate}={text}, err: strconv.ParseBool: parsing "{text}": invalid syntax')
        wanted[gate] = text[0] in "1tT"
    given: dict[str, bool] = {}
    for group, stage in _ALL.items():
        if group in wanted:
            value = wanted.pop(group)
            given |= {name: value for name, gate in KNOWN.items() if gate.stage == stage}
    for name, value in wanted.items():
        known = KNOWN.get(name)
        if known is None:
            raise GateError(f"unrecognized feature gate: {name}")
        if known.locked and known.default != value:
            default = str(known.default).lower()
            text = f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {default}"
            raise GateError(text)
        given[name] = value
    return Gates({name: value for name, value in given.items() if value != KNOWN[name].default})
