"""Facts on functions of NCCL, the driver and the CUDA runtime: the release that brought one dates a library."""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.model.versions import CudaVersion, parsed_cuda

_NCCL = {
    "2.4.2": "CommGetAsyncError CommAbort",
    "2.7.3": "Recv Send",
    "2.11.4": "RedOpCreatePreMulSum RedOpDestroy",
    "2.13.4": "GetLastError",
    "2.14.3": "CommFinalize CommInitRankConfig",
    "2.18.1": "CommSplit",
    "2.19.1": "MemAlloc CommRegister CommDeregister MemFree",
    "2.22.3": "GroupSimulateEnd",
    "2.23.4": "CommInitRankScalable",
    "2.24.3": "ResetDebugInit",
    "2.27.3": "CommShrink CommWindowRegister CommWindowDeregister",
    "2.28.3": "Gather Scatter AlltoAll DevCommCreate DevCommDestroy TeamWorld TeamLsa TeamRail",
    "2.28.7": "CommRevoke",
    "2.29.2": "WinGetUserPtr Signal PutSignal WaitSignal CommGetUniqueId CommGrow CommQueryProperties",
    "2.29.7": "CommSuspend CommResume CommMemStats",
    "2.30.4": "ParamGet ParamBind ParamGetStr ParamDumpAll ParamGetAllParameterKeys",
}
"""The first tagged release whose nccl.h declares each function (NVIDIA/nccl, all tags up to 2.30.7)."""

_DRIVER = {
    "10.2": "MemAddressFree MemAddressReserve MemCreate MemMap MemUnmap MemRelease MemSetAccess "
    "MemExportToShareableHandle MemImportFromShareableHandle MemGetAllocationGranularity GraphExecUpdate",
    "11.2": "MemAllocAsync MemFreeAsync MemAllocFromPoolAsync MemPoolCreate MemPoolDestroy MemPoolTrimTo "
    "DeviceGetDefaultMemPool DeviceGetMemPool",
    "11.3": "GetProcAddress FlushGPUDirectRDMAWrites GraphDebugDotPrint UserObjectCreate",
    "11.4": "GraphInstantiateWithFlags DeviceGraphMemTrim CtxGetExecAffinity DeviceGetUuid_v2",
    "11.6": "LaunchKernelEx GraphNodeSetEnabled",
    "11.7": "ModuleGetLoadingMode MemGetHandleForAddressRange OccupancyMaxActiveClusters "
    "OccupancyMaxPotentialClusterSize",
    "12.0": "LibraryLoadData LibraryLoadFromFile LibraryGetKernel LibraryUnload LibraryGetModule LibraryGetGlobal "
    "KernelGetAttribute KernelSetAttribute KernelGetFunction TensorMapEncodeTiled TensorMapEncodeIm2col CtxGetId "
    "StreamGetId GraphInstantiateWithParams GetProcAddress_v2",
    "12.1": "MulticastCreate MulticastAddDevice MulticastBindMem MulticastBindAddr MulticastGetGranularity "
    "MulticastUnbind CtxSetFlags CoredumpSetAttribute",
    "12.2": "GraphAddNode GraphNodeSetParams GraphExecNodeSetParams",
    "12.3": "KernelGetName FuncGetName GraphConditionalHandleCreate StreamBeginCaptureToGraph",
    "12.4": "GreenCtxCreate GreenCtxDestroy CtxFromGreenCtx DeviceGetDevResource DevSmResourceSplitByCount "
    "FuncGetParamInfo KernelGetParamInfo FuncLoad FuncIsLoaded LibraryEnumerateKernels LibraryGetKernelCount",
    "12.5": "CtxRecordEvent CtxWaitEvent GreenCtxStreamCreate KernelGetLibrary",
    "12.6": "MemBatchDecompressAsync",
    "12.8": "MemcpyBatchAsync Memcpy3DBatchAsync StreamGetDevice TensorMapEncodeIm2colWide "
    "CheckpointProcessLock CheckpointProcessCheckpoint",
    "12.9": "LogsCurrent LogsDumpToFile LogsRegisterCallback GreenCtxGetId",
    "13.0": "MemPrefetchBatchAsync MemDiscardBatchAsync MemGetMemPool MemGetDefaultMemPool "
    "DeviceGetP2PAtomicCapabilities",
}
"""The CUDA whose cudaTypedefs.h (NVIDIA's cuda-runtime wheels, 11.7 to 13.0) first has each ``cu`` function."""

_RUNTIME = {
    "10.1": "__cudaRegisterFatBinaryEnd",
    "9.2": "__cudaPushCallConfiguration __cudaPopCallConfiguration",
    "11.2": "cudaMallocAsync cudaFreeAsync",
    "11.8": "cudaLaunchKernelExC cudaOccupancyMaxActiveClusters",
    "12.0": "cudaGetDeviceProperties_v2 cudaGraphInstantiateWithParams cudaGetKernel cudaStreamGetId cudaInitDevice "
    "__cudaLaunchKernel __cudaGetKernel",
    "12.4": "cudaFuncGetName cudaFuncGetParamInfo cudaGraphAddNode cudaStreamBeginCaptureToGraph",
    "12.5": "cudaGetDriverEntryPointByVersion",
    "12.8": "cudaLibraryLoadData cudaLibraryGetKernel cudaMemcpyBatchAsync cudaStreamGetDevice cudaEventElapsedTime_v2",
    "13.0": "__cudaGetProcAddress cudaMemPrefetchBatchAsync cudaLogsCurrent cudaMemGetMemPool",
}
"""The CUDA whose libcudart first exports each function (NVIDIA's wheels 11.7 to 13.0, its release notes before)."""


def nccl_since(_case: Case, lines: Lines) -> str | None:
    """The NCCL that brought the function."""
    return _since(_NCCL, _symbol(lines).removeprefix("nccl"))


def driver_since(_case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA whose driver brought the function."""
    return parsed_cuda(_since(_DRIVER, _symbol(lines).removeprefix("cu")))


def runtime_since(_case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA whose runtime brought the function."""
    return parsed_cuda(_since(_RUNTIME, _symbol(lines)))


def _since(table: Mapping[str, str], function: str) -> str | None:
    return next((version for version, names in table.items() if function in names.split()), None)


def _symbol(lines: Lines) -> str:
    return merged(lines).get("symbol", "")
