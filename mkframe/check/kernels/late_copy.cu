// A producer that is late on purpose: it lets whatever follows it start at once, waits, and only then writes.
// Units of two bytes, the smallest of our dtypes; any number of blocks.
extern "C" __global__ void late_copy(unsigned short* target, const unsigned short* source, unsigned long long count, unsigned long long delay_ns) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < delay_ns);
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) target[i] = source[i];
}
