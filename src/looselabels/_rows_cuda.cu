// The row solver of `_rows` for a GPU: one thread solves one row, one pass reads the rows once.
//
// N_CLASSES, N_LABELS, REAL (the type of the stored numbers), TILE (the rows of a block of threads)
// and the tolerances of `_rows` and `_blocks` are defined when this file is compiled.
// The arithmetic of a row is float64. `dual_rows` is for an invertible transition and a uniform
// prior, `ascend_rows` for everything else and for rows that `dual_rows` leaves. A row that neither
// certifies, or that has several optima, is marked in `left` and not counted in the sums.

constexpr int K = N_CLASSES, L = N_LABELS;
constexpr int N_ENTRIES = (K * L + TILE - 1) / TILE;  // of the label mass, for each thread
constexpr int STRIDE = TILE + 1;  // avoids bank conflicts
constexpr int MAX_ABSENT = 8;     // rows with more absent classes are left to `ascend_rows`
constexpr double HUGE_GAP = 1e300;
constexpr int DUAL_STEPS = 12;
constexpr int N_SUMS = K * L + 4;  // label mass, objective, sum and maximum of gaps, rows left

struct Problem {
    double transition[K * L];
    double inverse[L * K];
    double log_prior[K];
    double largest[L];  // the largest entry of each column of the transition
    double tol;         // a row counts as solved if its gap is at most this
    double tie;         // a class with a slope above minus this can be part of an optimum
    double full_rank;   // 1 or 0
};

__constant__ Problem problem;

// ------------------------------------------------------------------------------- points of a row

struct Row {
    double labels[L], point[K], explained[L], slope[K], gap;
};

// Read label_proba, without negligible labels and those that no class can have.
__device__ bool read_labels(const REAL *stored, Row &row) {
    double total = 0.0;
    bool all = true;
#pragma unroll
    for (int s = 0; s < L; ++s) {
        const double value = stored[s];
        const bool used = value > NEGLIGIBLE && problem.largest[s] > 0;
        row.labels[s] = used ? value : 0.0;
        total += row.labels[s];
        all = all && used;
    }
    const double scale = total > 0 ? 1 / total : 1.0;
#pragma unroll
    for (int s = 0; s < L; ++s) row.labels[s] *= scale;
    return all;
}

__device__ void mix(const double *point, double *explained) {
#pragma unroll
    for (int s = 0; s < L; ++s) {
        double total = 0.0;
#pragma unroll
        for (int k = 0; k < K; ++k) total += point[k] * problem.transition[k * L + s];
        explained[s] = total;
    }
}

// 1 / x. The division of CUDA handles numbers that do not occur here, and takes twice as long.
__device__ double reciprocal(double x) {
#ifdef __CUDACC__
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    for (int step = 0; step < 2; ++step) r = fma(r, fma(-x, r, 1.0), r);  // 20, 40, all digits
    return r;
#else
    return 1 / x;
#endif
}

// Fill in yT, the slope (the gradient minus its mean under y) and the gap of the point.
__device__ void evaluate(Row &row) {
    double ratio[L], level = 0.0;
    mix(row.point, row.explained);
#pragma unroll
    for (int s = 0; s < L; ++s)
        ratio[s] = row.labels[s] > 0 ? row.labels[s] * reciprocal(row.explained[s]) : 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        double total = problem.log_prior[k];
#pragma unroll
        for (int s = 0; s < L; ++s) total += problem.transition[k * L + s] * ratio[s];
        row.slope[k] = total;
        level += row.point[k] * total;
    }
    row.gap = 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        row.slope[k] -= level;
        row.gap = fmax(row.gap, row.slope[k]);
    }
    if (!(fabs(level) < HUGE_GAP)) row.gap = HUGE_GAP;  // a label with yT = 0
}

__device__ void normalize(double *point) {
    double total = 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k) total += point[k] = fmax(point[k], 0.0);
    const bool usable = total > 0 && total < HUGE_GAP;
    const double scale = usable ? 1 / total : 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k) point[k] = usable ? point[k] * scale : 1.0 / K;
}

__device__ void average_with_uniform(double *point) {
#pragma unroll
    for (int k = 0; k < K; ++k) point[k] = (point[k] + 1.0 / K) / 2;
}

// Whether y rules out a label of the row, or nearly so: see `_ruled_out` in _blocks.
__device__ bool rules_out(const Row &row) {
    bool any = false;
#pragma unroll
    for (int s = 0; s < L; ++s)
        any = any || (row.labels[s] > 0 &&
                      row.explained[s] <= RULED_OUT * row.labels[s] * problem.largest[s]);
    return any;
}

// The start: the class_proba of the last pass, or ST⁻¹ if there is none.
__device__ void read_start(const REAL *stored, Row &row) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
        double total = 0.0;
        if (stored) {
            total = stored[k];
        } else {
#pragma unroll
            for (int s = 0; s < L; ++s) total += row.labels[s] * problem.inverse[s * K + k];
        }
        row.point[k] = total;
    }
    normalize(row.point);
}

// Solve the lower triangle of a positive definite system in place, with the ridge of `_rows`.
__device__ void solve_system(double *gram, int width, int size, double flat, double *one,
                             double *two) {
    for (int a = 0; a < size; ++a) {
        const double diagonal = gram[a * width + a];
        const double lift = RIDGE * (diagonal > 0 ? diagonal : 1.0) + flat;
        for (int b = 0; b <= a; ++b) {
            double total = gram[a * width + b];
            for (int c = 0; c < b; ++c) total -= gram[a * width + c] * gram[b * width + c];
            gram[a * width + b] =
                a == b ? sqrt(fmax(total, 0.0) + lift) : total / gram[b * width + b];
        }
    }
    double *rights[] = {one, two};
    for (double *right : rights) {
        if (!right) continue;
        for (int a = 0; a < size; ++a) {
            for (int b = 0; b < a; ++b) right[a] -= gram[a * width + b] * right[b];
            right[a] /= gram[a * width + a];
        }
        for (int a = size - 1; a >= 0; --a) {
            right[a] /= gram[a * width + a];
            for (int b = 0; b < a; ++b) right[b] -= gram[a * width + b] * right[a];
        }
    }
}

// --------------------------------------------------------------------------------------- the dual

struct Dual {
    double price[K], slack[L], proba[K], residual;
};

// Fill in the class_proba that the prices imply; return whether all slacks are positive.
__device__ bool follow_prices(const Row &row, Dual &at) {
    bool inside = true;
#pragma unroll
    for (int s = 0; s < L; ++s) at.slack[s] = 1.0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        at.proba[k] = 0.0;
        if (at.price[k] > 0) {  // few are
#pragma unroll
            for (int s = 0; s < L; ++s) at.slack[s] -= problem.inverse[s * K + k] * at.price[k];
        }
    }
#pragma unroll
    for (int s = 0; s < L; ++s) {
        const double explained = row.labels[s] * reciprocal(at.slack[s]);
        inside = inside && at.slack[s] > 0;
#pragma unroll
        for (int k = 0; k < K; ++k) at.proba[k] += explained * problem.inverse[s * K + k];
    }
    at.residual = 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k)
        at.residual = fmax(at.residual, fabs(fmin(at.proba[k], at.price[k])));
    return inside;
}

// Write the Newton step of the prices into `move`; return false if too many classes are absent.
// `columns` holds the columns of the inverse, one after the other.
__device__ bool price_step(const Row &row, const Dual &at, const double *columns, double *move) {
    int members[MAX_ABSENT], size = 0;
    double gram[MAX_ABSENT * MAX_ABSENT], right[MAX_ABSENT];
#pragma unroll
    for (int k = 0; k < K; ++k) {
        move[k] = 0.0;
        if (at.price[k] > 0 || at.proba[k] < 0) {
            if (size == MAX_ABSENT) return false;
            members[size] = k;
            right[size++] = at.proba[k];
        }
    }
    for (int a = 0; a < size; ++a) {
        double part[L];
#pragma unroll
        for (int s = 0; s < L; ++s)
            part[s] = columns[members[a] * L + s] * row.labels[s] *
                      reciprocal(at.slack[s] * at.slack[s]);
        for (int b = 0; b <= a; ++b) {
            double total = 0.0;
#pragma unroll
            for (int s = 0; s < L; ++s) total += part[s] * columns[members[b] * L + s];
            gram[a * MAX_ABSENT + b] = total;
        }
    }
    solve_system(gram, MAX_ABSENT, size, 0.0, right, nullptr);
#pragma unroll
    for (int k = 0; k < K; ++k) {
        for (int a = 0; a < size; ++a) move[k] = members[a] == k ? right[a] : move[k];
    }
    return true;
}

// Solve a row for the prices of its absent classes, as `_rows.solve_dual` does. A step is accepted
// if it lowers the residual; a row where none does is left to `ascend_rows`.
__device__ void solve_dual(Row &row, const double *columns) {
    Dual at;
    double best[K], move[K], lowest = HUGE_GAP, share = 1.0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        at.price[k] = row.point[k] > 0 ? 0.0 : fmax(-row.slope[k], 0.0);
        best[k] = move[k] = 0.0;
    }
    for (int step = 0; step < DUAL_STEPS; ++step) {
        if (follow_prices(row, at) && at.residual < lowest) {
            if (at.residual <= problem.tol / 100) break;
            lowest = at.residual;
            share = 1.0;
#pragma unroll
            for (int k = 0; k < K; ++k) best[k] = at.price[k];
            if (!price_step(row, at, columns, move)) break;
        } else {
            share /= 2;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) at.price[k] = fmax(best[k] - share * move[k], 0.0);
    }
#pragma unroll
    for (int k = 0; k < K; ++k) row.point[k] = at.price[k] > 0 ? 0.0 : at.proba[k];
    normalize(row.point);
}

// ------------------------------------------------------------------------------------- the ascent

// The Newton direction on the free classes; its entries sum to zero.
__noinline__ __device__ void equality_newton(const Row &row, const bool *free, double *direction) {
    int members[K], size = 0;
    double gram[K * K], toward[K], shift[K];
    for (int k = 0; k < K; ++k) {
        direction[k] = 0.0;
        if (!free[k]) continue;
        members[size] = k;
        toward[size] = row.slope[k];
        shift[size++] = 1.0;
    }
    for (int a = 0; a < size; ++a)
        for (int b = 0; b <= a; ++b) gram[a * K + b] = 0.0;
    for (int s = 0; s < L; ++s) {
        if (row.labels[s] == 0) continue;
        const double weight = row.labels[s] / (row.explained[s] * row.explained[s]);
        for (int a = 0; a < size; ++a) {
            const double part = problem.transition[members[a] * L + s] * weight;
            if (part == 0) continue;
            for (int b = 0; b <= a; ++b)
                gram[a * K + b] += part * problem.transition[members[b] * L + s];
        }
    }
    solve_system(gram, K, size, FLAT, toward, shift);
    double sum = 0.0, total = 0.0;
    for (int a = 0; a < size; ++a) sum += toward[a], total += shift[a];
    for (int a = 0; a < size; ++a) direction[members[a]] = toward[a] - shift[a] * (sum / total);
}

__noinline__ __device__ void find_direction(const Row &row, double *direction) {
    bool free[K];
    for (int k = 0; k < K; ++k) free[k] = row.point[k] > 0 || row.slope[k] > 0;
    for (bool blocked = true; blocked;) {
        equality_newton(row, free, direction);
        blocked = false;
        for (int k = 0; k < K; ++k) {
            const bool stays = !(free[k] && row.point[k] <= 0 && direction[k] < 0);
            blocked = blocked || !stays;
            free[k] = free[k] && stays;
        }
    }
    int steepest = 0;
    double worst = 0.0;
    for (int k = 0; k < K; ++k) {
        if (row.slope[k] > row.slope[steepest]) steepest = k;
        if (free[k]) worst = fmax(worst, fabs(row.slope[k]));
    }
    if (worst <= problem.tol / 2) {  // the absent class of largest slope must enter
        for (int k = 0; k < K; ++k) free[k] = row.point[k] > 0 || k == steepest;
        equality_newton(row, free, direction);
    }
}

// The increase of the objective from the row's point to `target`, accurate near the optimum.
__device__ double rise_to(const Row &row, const double *target, double gain) {
    double mixed[L], loss = 0.0;
    mix(target, mixed);
    for (int s = 0; s < L; ++s) {
        if (row.labels[s] == 0) continue;
        if (mixed[s] <= 0) return -HUGE_GAP;
        const double r = (mixed[s] - row.explained[s]) / row.explained[s];
        loss += row.labels[s] * (fabs(r) < SMALL_CHANGE ? r * r * (0.5 - r * (1.0 / 3 - r / 4))
                                                        : r - log(mixed[s] / row.explained[s]));
    }
    return gain - loss;
}

// Move the point uphill; return false if no step helps. The attempts are those of `_rows._step`.
__noinline__ __device__ bool line_search(Row &row, const double *direction) {
    double length = 1.0, first = 1.0, target[K];
    int first_at = -1;
    for (int k = 0; k < K; ++k) {
        if (direction[k] < 0 && -row.point[k] / direction[k] < first) {
            first = -row.point[k] / direction[k];
            first_at = k;
        }
    }
    for (int attempt = 0; attempt < 60; ++attempt) {
        const bool at_boundary = attempt == 2 && first_at >= 0;
        const double floor = attempt == 1 ? SHRINK : 0.0;
        for (int k = 0; k < K; ++k)
            target[k] = fmax(row.point[k] + length * direction[k], floor * row.point[k]);
        if (at_boundary) target[first_at] = 0.0;
        normalize(target);
        double gain = 0.0;
        for (int k = 0; k < K; ++k) gain += row.slope[k] * (target[k] - row.point[k]);
        const double rise = rise_to(row, target, gain);
        if (rise > ARMIJO * fabs(gain) || (at_boundary && rise >= -NOISE)) {
            for (int k = 0; k < K; ++k) row.point[k] = target[k];
            return true;
        }
        if (attempt > 0) length = attempt == 1 ? first : length / 2;
    }
    return false;
}

// Whether the row can have several optima: see `is_ambiguous` in _rows.
__noinline__ __device__ bool is_ambiguous(const Row &row) {
    int members[K], size = 0, tied = 0;
    double gram[K * K];
    bool all = problem.full_rank > 0;
    for (int s = 0; s < L; ++s) all = all && row.labels[s] > 0;
    for (int k = 0; k < K; ++k) tied += row.slope[k] >= -problem.tie;
    if (all || tied < 2) return false;
    for (int k = 0; k < K; ++k) {
        if (row.slope[k] < -problem.tie) continue;
        members[size] = k;
        double pivot = 0.0, left = 0.0;
        for (int a = 0; a <= size; ++a) {
            double total = 0.0;
            for (int s = 0; s < L; ++s) {
                if (row.labels[s] == 0) continue;
                const double scale = problem.largest[s] * problem.largest[s];
                total += problem.transition[k * L + s] * problem.transition[members[a] * L + s] /
                         scale;
            }
            if (a == size) {
                pivot = left = total;
            } else {
                for (int b = 0; b < a; ++b) total -= gram[size * K + b] * gram[a * K + b];
                gram[size * K + a] = total / gram[a * K + a];
            }
        }
        for (int b = 0; b < size; ++b) left -= gram[size * K + b] * gram[size * K + b];
        if (left <= SINGULAR * pivot) return true;
        gram[size * K + size] = sqrt(left);
        ++size;
    }
    return false;
}

// Whether the point may be the answer: certified, and explaining even the negligible labels.
__device__ bool is_settled(const Row &row, const REAL *stored) {
    bool explained = true;
#pragma unroll
    for (int s = 0; s < L; ++s)
        explained = explained &&
                    (row.labels[s] > 0 || !(stored[s] > 0) || problem.largest[s] <= 0 ||
                     row.explained[s] > RULED_OUT * double(stored[s]) * problem.largest[s]);
    return row.gap <= problem.tol && explained;
}

__device__ double objective_of(const Row &row) {
    double value = 0.0;
#pragma unroll
    for (int s = 0; s < L; ++s)
        if (row.labels[s] > 0) value += row.labels[s] * log(row.explained[s] * reciprocal(row.labels[s]));
#pragma unroll
    for (int k = 0; k < K; ++k) value += row.point[k] * problem.log_prior[k];
    return value;
}

// Solve one row; return whether it is settled.
template <bool DUAL>
__device__ bool solve_row(const REAL *stored, const REAL *start, const double *columns, Row &row) {
    const bool all = read_labels(stored, row);
    read_start(start, row);
    if (DUAL && !all) return false;
    double direction[K];
    bool done = false;
    for (int step = 0; step < MAX_STEPS; ++step) {
        evaluate(row);  // at one place only: the compiler unrolls it
        if (step == 0 && (row.gap > 1 || rules_out(row))) {  // too far for Newton's method
            average_with_uniform(row.point);
            continue;
        }
        if (done || row.gap <= problem.tol) break;
        if (DUAL) {
            solve_dual(row, columns);
            done = true;
        } else {
            find_direction(row, direction);
            done = !line_search(row, direction);
        }
    }
    return is_settled(row, stored) && (DUAL || !is_ambiguous(row));
}

#ifdef __CUDACC__
// ------------------------------------------------------------------------------------ the kernels

// Copy the tile's rows from or to global memory with neighboring threads at neighboring numbers.
template <int WIDTH>
__device__ void load(const REAL *from, const long long *rows, long long begin, int count, REAL *to) {
    for (int i = threadIdx.x; i < count * WIDTH; i += TILE)
        to[i] = rows ? from[rows[begin + i / WIDTH] * WIDTH + i % WIDTH] : from[begin * WIDTH + i];
}

template <int WIDTH>
__device__ void save(const REAL *from, const long long *rows, long long begin, int count, REAL *to) {
    for (int i = threadIdx.x; i < count * WIDTH; i += TILE)
        (rows ? to[rows[begin + i / WIDTH] * WIDTH + i % WIDTH] : to[begin * WIDTH + i]) = from[i];
}

// Solve the rows (all, or those in the list `rows`) and write one line of sums per block.
template <bool DUAL>
__device__ void solve_rows(const REAL *labels, const REAL *start, const double *weights,
                           const long long *rows, long long n_rows, REAL *proba, REAL *gaps,
                           bool *left, double *sums) {
    __shared__ double columns[K * L];
    // The stored rows and the terms of the label mass are never needed at the same time.
    __shared__ double scratch[(K + L < 4 ? 4 : K + L) * STRIDE];
    REAL *label_tile = reinterpret_cast<REAL *>(scratch), *class_tile = label_tile + L * TILE;
    for (int i = threadIdx.x; i < K * L; i += TILE)
        columns[i] = problem.inverse[(i % L) * K + i / L];
    double mass[N_ENTRIES] = {}, value = 0.0, gap_sum = 0.0, gap_max = 0.0, n_left = 0.0;
    const int me = threadIdx.x;
    for (long long begin = blockIdx.x * (long long)TILE; begin < n_rows;
         begin += gridDim.x * (long long)TILE) {
        const int count = int(n_rows - begin < TILE ? n_rows - begin : TILE);
        __syncthreads();
        load<L>(labels, rows, begin, count, label_tile);
        if (start) load<K>(start, rows, begin, count, class_tile);
        __syncthreads();
        Row row;
        bool settled = false;
        double weight = 0.0;
        if (me < count) {
            const long long at = rows ? rows[begin + me] : begin + me;
            settled = solve_row<DUAL>(label_tile + me * L, start ? class_tile + me * K : nullptr,
                                      columns, row);
            left[at] = !settled;
            n_left += !settled;
            if (settled) {
                weight = weights ? weights[at] : 1.0;
                gaps[at] = REAL(row.gap);
                value += weight > 0 ? weight * objective_of(row) : 0.0;
                gap_sum += weight * row.gap;
                gap_max = fmax(gap_max, row.gap);
            }
        }
        __syncthreads();
        if (me < count)
            for (int k = 0; k < K; ++k) class_tile[me * K + k] = REAL(row.point[k]);
        __syncthreads();
        save<K>(class_tile, rows, begin, count, proba);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < K; ++k) scratch[k * STRIDE + me] = settled ? row.point[k] : 0.0;
#pragma unroll
        for (int s = 0; s < L; ++s)
            scratch[(K + s) * STRIDE + me] =
                settled && row.labels[s] > 0
                    ? weight * row.labels[s] * reciprocal(row.explained[s])
                    : 0.0;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < N_ENTRIES; ++e) {
            const int entry = me + e * TILE;
            if (entry >= K * L) continue;
            const double *points = scratch + (entry / L) * STRIDE;
            const double *ratios = scratch + (K + entry % L) * STRIDE;
            double total = 0.0;
            for (int i = 0; i < count; ++i) total += points[i] * ratios[i];
            mass[e] += total;
        }
    }
    double *mine = sums + blockIdx.x * (long long)N_SUMS;
#pragma unroll
    for (int e = 0; e < N_ENTRIES; ++e) {
        const int entry = me + e * TILE;
        if (entry < K * L) mine[entry] = mass[e] * problem.transition[entry];
    }
    __syncthreads();
    scratch[me] = value;
    scratch[TILE + me] = gap_sum;
    scratch[2 * TILE + me] = gap_max;
    scratch[3 * TILE + me] = n_left;
    __syncthreads();
    if (me < 4) {
        double total = 0.0;
        for (int i = 0; i < TILE; ++i) {
            const double one = scratch[me * TILE + i];
            total = me == 2 ? fmax(total, one) : total + one;
        }
        mine[K * L + me] = total;
    }
}

#define KERNEL(name, dual)                                                                       \
    extern "C" __global__ void __launch_bounds__(TILE, MIN_BLOCKS) name(                                     \
        const REAL *labels, const REAL *start, const double *weights, const long long *rows,     \
        long long n_rows, REAL *proba, REAL *gaps, bool *left, double *sums) {                   \
        solve_rows<dual>(labels, start, weights, rows, n_rows, proba, gaps, left, sums);         \
    }
KERNEL(dual_rows, true)
KERNEL(ascend_rows, false)
#endif
