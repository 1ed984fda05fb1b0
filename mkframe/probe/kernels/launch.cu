// Launch floors, barriers, delay and clock. Compiled at run time by NVRTC, so nothing is included.
// Every kernel that touches data leaves contents behind that the host checks.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 timer_ns() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Relaxed accesses of GPU scope go to L2, and the assembler does not forward a store to a later load.
__device__ __forceinline__ u32 load_l2(const u32* p) {
    u32 v;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
#else
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
#endif
    return v;
}

__device__ __forceinline__ void store_l2(u32* p, u32 v) {
#if __CUDA_ARCH__ >= 700
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#else
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#endif
}

// ---------------------------------------------------------------- nothing, and next to nothing

extern "C" __global__ void empty() {}

__device__ __forceinline__ void touch_body(u32* p, u32* q, u32 mode) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (mode == 1) store_l2(q + i, i ^ 0x5eed1234u);
    if (mode == 2 && load_l2(p + i) == 0xffffffffu) store_l2(q + i, 0);  // the host keeps p below that
    if (mode == 3) store_l2(p + i, load_l2(p + i) + 1);
}

// mode 0: reads its parameters only; 1: one store a thread; 2: one load; 3: load, add 1, store.
extern "C" __global__ void touch(u32* p, u32* q, u32 mode) { touch_body(p, q, mode); }

#if __CUDA_ARCH__ >= 900
// Programmatic edges: let the next kernel start, then wait for the end of the one before.
__device__ __forceinline__ void programmatic_edge() {
    asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
}

extern "C" __global__ void empty_programmatic() { programmatic_edge(); }

extern "C" __global__ void touch_programmatic(u32* p, u32* q, u32 mode) {
    programmatic_edge();
    touch_body(p, q, mode);
}
#endif

// ---------------------------------------------------------------- barriers

struct BlockBarrier {
    __device__ static void wait(u32*) { __syncthreads(); }
};

#if __CUDA_ARCH__ >= 900
struct ClusterBarrier {
    __device__ static void wait(u32*) {
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
};
#endif

#if __CUDA_ARCH__ >= 700
// A ticket in global memory. All blocks but the first add 1, the first adds what makes the top bit flip once everybody has
// arrived; so the ticket needs no reset. All blocks must be resident (cooperative launch).
struct GridBarrier {
    __device__ static void wait(u32* ticket) {
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 before, now, mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
            asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(ticket), "r"(mine) : "memory");
            now = before + mine;
            while (!((now ^ before) & 0x80000000u))
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(ticket) : "memory");
        }
        __syncthreads();
    }
};
#endif

// `steps` dependent exchanges through L2: store, barrier, load from a neighbour, add 1. The neighbour is the next block of the
// group that the barrier joins (`group` blocks), in a group of one the next warp. Each step has a value of its own, and the two
// halves of q take turns, so a barrier that lets a stale value through changes the result: p grows by `steps` + 1 in every element.
template <class Barrier> __device__ __forceinline__ void exchange(u32* p, u32* q, u32 steps, u32 group, u32* ticket) {
    u32 n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 span = group * blockDim.x, first = blockIdx.x / group * span, hop = group > 1 ? blockDim.x : 32u;
    u32 j = first + (i - first + hop) % span;
    u32 v = load_l2(p + i);
    for (u32 k = 0; k < steps; k++) {
        u32* half = q + (k & 1) * n;
        store_l2(half + i, v);
        Barrier::wait(ticket);
        v = load_l2(half + j) + 1;
    }
    store_l2(p + i, v + 1);
}

template <class Barrier> __device__ __forceinline__ void repeat(u32 count, u32* ticket, u32* done) {
    for (u32 k = 0; k < count; k++) Barrier::wait(ticket);
    if (threadIdx.x == 0) done[blockIdx.x] = count;
}

extern "C" __global__ void exchange_block(u32* p, u32* q, u32 steps, u32 group, u32* ticket) {
    exchange<BlockBarrier>(p, q, steps, group, ticket);
}
extern "C" __global__ void barrier_block(u32 count, u32* ticket, u32* done) { repeat<BlockBarrier>(count, ticket, done); }

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void exchange_cluster(u32* p, u32* q, u32 steps, u32 group, u32* ticket) {
    exchange<ClusterBarrier>(p, q, steps, group, ticket);
}
extern "C" __global__ void barrier_cluster(u32 count, u32* ticket, u32* done) { repeat<ClusterBarrier>(count, ticket, done); }
#endif

#if __CUDA_ARCH__ >= 700
extern "C" __global__ void exchange_grid(u32* p, u32* q, u32 steps, u32 group, u32* ticket) {
    exchange<GridBarrier>(p, q, steps, group, ticket);
}
extern "C" __global__ void barrier_grid(u32 count, u32* ticket, u32* done) { repeat<GridBarrier>(count, ticket, done); }
#endif

// ---------------------------------------------------------------- time

extern "C" __global__ void delay(u64 ns) {
    u64 start = timer_ns();
    while (timer_ns() - start < ns) {}
}

// SM cycles and nanoseconds of the same stretch of at least `ns`, both from edges of the timer: out[0] cycles, out[1] ns.
extern "C" __global__ void clock_rate(u64* out, u64 ns) {
    u64 start = timer_ns(), now;
    while ((now = timer_ns()) == start) {}
    start = now;
    long long cycles = clock64();
    while ((now = timer_ns()) - start < ns) {}
    out[0] = (u64)(clock64() - cycles);
    out[1] = now - start;
}
