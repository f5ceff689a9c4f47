import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { campaignPattern, isFullCampaign, tags } from './scripts/campaign-tests.mjs';

// Workspace packages resolve to their sources, so tests never run against a stale build.
// Only tests that start `bin/ctl` or a server as a process need `npm run build` first; `npm test`
// always builds.
// vitest passes them on to Node. `import` and `default` apply by themselves; named here, `import`
// would hold for require too.
const conditions = ['millrace-source', 'node'];

/** CPU seconds of each file when they were recorded, with MILLRACE_DURATIONS=write. */
const durations = JSON.parse(
  readFileSync(new URL('test/durations.json', import.meta.url), 'utf8'),
) as Record<string, number>;

function pathOf({ moduleId }: TestSpecification): string {
  return relative(import.meta.dirname, moduleId).replaceAll('\\', '/');
}

function secondsOf(file: TestSpecification): number {
  return durations[pathOf(file)] ?? 1;
}

/**
 * These run up to a thousand programs each, and the start of one copies the page tables of the
 * worker: branch-changes takes 5.6 CPU seconds in a new worker, 13.7 after three large files, and
 * 23.7 in a worker that holds 500 MB more. So they come before what makes the workers large.
 */
const startsPrograms = /^packages\/daemon\/src\/(?:branches|git|sessions|usage|workbench)\//;

function rankOf(file: TestSpecification): number {
  const path = pathOf(file);
  if (file.project.name === 'alone') return 0;
  if (startsPrograms.test(path)) return 1;
  if (path.startsWith('packages/daemon/test/')) return 2;
  return path.includes('/src/') ? 4 : 3;
}

/** What takes long begins first, so that no core idles at the end; shards take equally long. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rankOf(a) - rankOf(b) || secondsOf(b) - secondsOf(a));
  }

  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard!;
    const shards = Array.from({ length: count }, () => ({ seconds: 0, files: [] as typeof files }));
    const inOrder = files.toSorted(
      (a, b) => secondsOf(b) - secondsOf(a) || (a.moduleId < b.moduleId ? -1 : 1),
    );
    for (const file of inOrder) {
      const [shortest] = shards.toSorted((a, b) => a.seconds - b.seconds);
      shortest!.files.push(file);
      shortest!.seconds += secondsOf(file);
    }
    return shards.at(index - 1)?.files ?? [];
  }
}

/** Mocks a module, or weighs the process that it is in. */
export const alone = [
  'packages/queue/test/postgres/contract.campaign.test.ts',
  'packages/db/test/server/watchers.test.ts',
  'packages/dashboard/src/pages/database/transfer.test.ts',
];

const leftOut = [...configDefaults.exclude, ...(isFullCampaign ? [] : [campaignPattern])];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    reporters: ['default', './scripts/closing-line.mjs'],
    setupFiles: process.env['MILLRACE_DURATIONS'] ? ['./scripts/cpu-time.mjs'] : [],
    pool: 'forks',
    // Many tests wait for others: with one more worker than cores, 1.6 of 2 cores were at work.
    // The projects below take this number, so VITEST_MAX_WORKERS changes it and --maxWorkers not.
    maxWorkers: availableParallelism() + 2,
    // A hang must end some time; a busy machine must not fail a test.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LongestFirst },
    // Loading the modules anew for each of hundreds of files costs as much as the tests.
    isolate: false,
    tags,
    projects: [
      // One for all: the workers and the transforms of one project do not serve another.
      {
        extends: true,
        test: {
          name: 'together',
          include: ['packages/*/{src,test}/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...leftOut, ...alone],
        },
      },
      { extends: true, test: { name: 'alone', include: alone, exclude: leftOut, isolate: true } },
    ],
  },
});
