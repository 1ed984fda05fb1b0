// Kernels that do nothing: what a launch costs by itself. Compiled at run time by NVRTC, so nothing is included.

extern "C" __global__ void empty() {}

#if __CUDA_ARCH__ >= 900
// Behind or in front of a programmatic edge: lets the next kernel start, then waits for the end of the one before.
extern "C" __global__ void empty_programmatic() {
    asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
}
#endif
