/* Reads files the way bench.sh times it: a small process, one buffer that is there before the clock starts.
 *
 *   reader [-d] [-b BYTES] [-n COUNT] [-p PASSES] [-l SECONDS] read|map|random|touch FILE...
 *
 * read    pread(2) of -b bytes, front to back       random  -n times pread(2) of 4 KiB anywhere
 * map     mmap(2), sum of all words                 touch   mmap(2), -n times one byte anywhere
 * -d drops the files from the kernel's cache first and verifies that; -p makes more passes, each with its own open, of
 * which only the first can be cold; -l ends the first pass after that time, and the others do what it did.
 * Prints a JSON array with {"seconds", "bytes", "ops"} for each pass. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 16 << 20 }; /* STEP: bytes that are summed between two looks at the clock */

static char *block;
static size_t size = 1 << 20;
static long count = 1000;
static double limit = 1e9;

static double start;
static long bytes, ops, budget = -1;
static volatile uint64_t sink; /* keeps the sums from being optimised away */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int over(void)
{
	return budget >= 0 ? ops >= budget : ops > 0 && now() - start > limit;
}

static void done(long n)
{
	bytes += n;
	ops++;
}

/* random_below draws the same numbers in each pass: state is put back to the seed in between. */
static uint64_t seed, state;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static int open_file(const char *name, off_t *length)
{
	struct stat st;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", name);
	*length = st.st_size;
	return fd;
}

static long read_at(const char *name, int fd, size_t n, off_t at)
{
	ssize_t got = pread(fd, block, n, at);
	if (got < 0)
		err(1, "%s: offset %jd", name, (intmax_t)at);
	return got;
}

static const char *map_file(const char *name, off_t *length)
{
	int fd = open_file(name, length);
	void *data = mmap(NULL, *length, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		err(1, "%s: mmap", name);
	close(fd);
	return data;
}

static void run_read(const char *name)
{
	off_t length;
	int fd = open_file(name, &length);
	long n;
	for (off_t at = 0; !over() && (n = read_at(name, fd, size, at)) > 0; at += n)
		done(n);
	close(fd);
}

static void run_random(const char *name)
{
	off_t length;
	int fd = open_file(name, &length);
	if (length < PAGE)
		errx(1, "%s: smaller than a page", name);
	for (long i = 0; i < count && !over(); i++)
		done(read_at(name, fd, PAGE, random_below(length / PAGE) * PAGE));
	close(fd);
}

static uint64_t sum(const uint64_t *words, size_t n)
{
	uint64_t s = 0;
	for (size_t i = 0; i < n; i++)
		s += words[i];
	return s;
}

static void run_map(const char *name)
{
	off_t length;
	const char *data = map_file(name, &length);
	for (off_t at = 0; at < length && !over(); at += STEP) {
		off_t n = length - at < STEP ? length - at : STEP;
		sink += sum((const uint64_t *)(data + at), n / sizeof(uint64_t));
		done(n);
	}
	munmap((void *)data, length);
}

static void run_touch(const char *name)
{
	off_t length;
	const char *data = map_file(name, &length);
	for (long i = 0; i < count && !over(); i++) {
		sink += data[random_below(length)];
		done(1);
	}
	munmap((void *)data, length);
}

static long resident(const char *name)
{
	off_t length;
	const char *data = map_file(name, &length);
	size_t pages = (length + PAGE - 1) / PAGE;
	unsigned char *in = malloc(pages);
	long found = 0;
	if (!in || mincore((void *)data, length, in))
		err(1, "%s: mincore", name);
	for (size_t i = 0; i < pages; i++)
		found += in[i] & 1;
	free(in);
	munmap((void *)data, length);
	return found;
}

/* drop asks more than once: pages that were read a moment ago may still wait in a list of a processor's own. */
static void drop(const char *name)
{
	off_t length;
	long left = 0;
	int fd = open_file(name, &length);
	for (int try = 0; try < 50; try++, usleep(10000)) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (!(left = resident(name)))
			break;
	}
	if (left)
		errx(1, "%s: %ld pages stay in the kernel's cache", name, left);
	close(fd);
}

static void (*job_called(const char *name))(const char *)
{
	static const struct { const char *name; void (*run)(const char *); } jobs[] = {
		{"read", run_read}, {"map", run_map}, {"random", run_random}, {"touch", run_touch},
	};
	for (size_t i = 0; name && i < sizeof jobs / sizeof *jobs; i++)
		if (!strcmp(name, jobs[i].name))
			return jobs[i].run;
	errx(2, "usage: reader [-d] [-b BYTES] [-n COUNT] [-p PASSES] [-l SECONDS] read|map|random|touch FILE...");
}

static void pass(void (*run)(const char *), char **files)
{
	state = seed;
	bytes = ops = 0;
	start = now();
	for (; *files; files++)
		run(*files);
	printf("{\"seconds\": %.9f, \"bytes\": %ld, \"ops\": %ld}", now() - start, bytes, ops);
	budget = ops;
}

int main(int argc, char **argv)
{
	int cold = 0, passes = 1, option;
	while ((option = getopt(argc, argv, "db:n:p:l:")) != -1)
		switch (option) {
		case 'd': cold = 1; break;
		case 'b': size = atol(optarg); break;
		case 'n': count = atol(optarg); break;
		case 'p': passes = atoi(optarg); break;
		case 'l': limit = atof(optarg); break;
		default: job_called(NULL);
		}
	void (*run)(const char *) = job_called(argv[optind]);
	char **files = argv + optind + (argv[optind] != NULL);
	if (posix_memalign((void **)&block, PAGE, size < PAGE ? PAGE : size) || getrandom(&seed, sizeof seed, 0) < 0)
		err(1, "starting");
	memset(block, 1, size);
	seed |= 1;
	for (char **f = files; cold && *f; f++)
		drop(*f);
	for (int i = 0; i < passes; i++) {
		fputs(i ? ", " : "[", stdout);
		pass(run, files);
	}
	puts("]");
}
