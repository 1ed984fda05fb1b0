// Bandwidth: DRAM reads, writes and copies, and L2 to the SMs. Compiled at run time by NVRTC, so nothing is included.
// With `check` set the readers add up every word that they took, which the host compares with the sum of the data.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ uint4 load_stream(const uint4* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

__device__ __forceinline__ uint4 load_l2(const uint4* p) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

__device__ __forceinline__ void add(uint4& a, uint4 v) {
    a.x += v.x;
    a.y += v.y;
    a.z += v.z;
    a.w += v.w;
}

// The sum modulo 2^32 of all words read. `same` 0: block b takes slab b of n / gridDim.x items of 16 bytes; 1: all blocks take
// everything. A slab is a multiple of U * blockDim.x items, so that no lane needs a branch.
template <int U, bool L2> __device__ __forceinline__ void read(const uint4* p, u64 n, u32 same, u32 passes, u32 check, u32* sum) {
    u64 slab = n / gridDim.x, lo = same ? 0 : slab * blockIdx.x, hi = same ? n : lo + slab;
    uint4 a = {0, 0, 0, 0};
    for (u32 pass = 0; pass < passes; pass++)
        for (u64 i = lo + threadIdx.x; i < hi; i += U * blockDim.x) {
            uint4 v[U];
#pragma unroll
            for (int u = 0; u < U; u++) v[u] = L2 ? load_l2(p + i + u * blockDim.x) : load_stream(p + i + u * blockDim.x);
#pragma unroll
            for (int u = 0; u < U; u++) add(a, v[u]);
        }
    u32 total = a.x + a.y + a.z + a.w;
    if (check || (total == 0x9e3779b9u && passes == 0xffffffffu)) atomicAdd(sum, total);  // all four parts of all loads are needed
}

extern "C" __global__ void read_dram(const uint4* p, u64 n, u32 same, u32 passes, u32 check, u32* sum) {
    read<8, false>(p, n, same, passes, check, sum);
}

extern "C" __global__ void read_l2(const uint4* p, u64 n, u32 same, u32 passes, u32 check, u32* sum) {
    read<4, true>(p, n, same, passes, check, sum);
}

// A slab is 4 * blockDim.x items.
extern "C" __global__ void copy(const uint4* p, uint4* q) {
    u64 i = 4ull * blockDim.x * blockIdx.x + threadIdx.x;
    uint4 v[4];
#pragma unroll
    for (int u = 0; u < 4; u++) v[u] = load_stream(p + i + u * blockDim.x);
#pragma unroll
    for (int u = 0; u < 4; u++) q[i + u * blockDim.x] = v[u];
}

// Item i gets {x, x ^ 0x55aa1234, ~x, x >> 3} with x = low word of i * 2654435761 + seed. A slab is 4 * blockDim.x items.
extern "C" __global__ void write(uint4* q, u32 seed) {
    u64 i = 4ull * blockDim.x * blockIdx.x + threadIdx.x;
#pragma unroll
    for (int u = 0; u < 4; u++) {
        u64 k = i + u * blockDim.x;
        u32 x = (u32)k * 2654435761u + seed;
        q[k] = uint4{x, x ^ 0x55aa1234u, ~x, x >> 3};
    }
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

// One thread a block keeps `stages` bulk copies of `tile` bytes in flight. Dynamic shared memory: stages * (tile + 8) bytes.
// `same` 0: tiles are dealt to the blocks in turn; 1: every block takes all of them, in step.
extern "C" __global__ void ring(const char* source, u64 bytes, u32 tile, u32 stages, u32 same, u32 passes, u32 check, u64* sum) {
    extern __shared__ __align__(128) char memory[];
    if (threadIdx.x) return;
    u32 tiles = (u32)(bytes / tile), base = shared_address(memory), barriers = base + stages * tile;
    u32 first = same ? 0 : blockIdx.x, stride = same ? 1 : gridDim.x;
    u32 mine = first < tiles ? (tiles - first + stride - 1) / stride : 0;
    for (u32 s = 0; s < stages; s++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8 * s) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    u32 total = mine * passes, next = 0, into = 0, from = 0, parity = 0;
    auto issue = [&] {
        u32 barrier = barriers + 8 * into;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(tile) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(base + into * tile),
                     "l"(source + (u64)(first + next * stride) * tile), "r"(tile), "r"(barrier) : "memory");
        next = next + 1 == mine ? 0 : next + 1;
        into = into + 1 == stages ? 0 : into + 1;
    };
    for (u32 k = 0; k < stages && k < total; k++) issue();
    u64 found = 0;
    for (u32 k = 0; k < total; k++) {
        barrier_wait(barriers + 8 * from, parity);
        if (check) {
            const volatile u32* words = (const volatile u32*)(memory + from * tile);
            for (u32 w = 0; w < tile / 4; w++) found += words[w];
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // these reads come before the next copy into the stage
        }
        if (++from == stages) from = 0, parity ^= 1;
        if (k + stages < total) issue();
    }
    if (check) atomicAdd(sum, found);
}
#endif
