/** A command of a page that no test runs as it is written. */
interface Exception {
  command: string;
  /** What is run in its place; nothing where nothing can be. */
  instead?: string;
  because: string;
}

/** Keep it short: everything else in the fences of README and docs is run as it is there. */
export const exceptions: readonly Exception[] = [
  {
    command: 'millrace tui',
    instead: 'millrace tui --help',
    because: 'it needs a terminal; packages/ctl/test/tui.test.ts drives it in one',
  },
  {
    command: 'millrace backend test mycli',
    instead: 'millrace backend test claude --driver headless',
    because: 'there is no mycli; packages/daemon/test/own-cli.test.ts has one',
  },
  {
    command: 'npm test',
    instead: 'npm test -- packages/kit/src/base/clock.test.ts',
    because: 'whole, it is the run that this test belongs to',
  },
  {
    command: 'npm run check',
    because:
      'the other half of .ci/run; it judges the sources for a minute and runs nothing of ours',
  },
  {
    command: 'npm run generate',
    because: 'writes into the sources; npm run check runs it with --check',
  },
  {
    command: 'npm run generate queue',
    because: 'writes into the sources; npm run check runs it with --check',
  },
  {
    command: 'npm run reference',
    because: 'writes into the sources; npm run check runs it with --check',
  },
  {
    command: 'bin/ctl demo',
    because: 'test/demo.test.ts runs it, and reads what it says',
  },
  {
    command: 'npm run crash -- queue-workers --rounds 5',
    because: 'packages/queue/test/worker-crash.test.ts runs this script for 5 rounds',
  },
  {
    command: 'npm run crash -- flows --store postgres --rounds 5',
    because: 'packages/queue/test/worker-crash.test.ts runs this script for 5 rounds',
  },
  {
    command: 'npm run crash -- --rounds 20',
    instead: 'npm run crash -- --rounds 1',
    because: 'packages/engine/test/crash.test.ts runs this script for 20 rounds',
  },
  {
    command:
      'millrace db serve --data /srv/db --grpc 10.0.0.1:5433 --http 10.0.0.1:8080 --min-acks 1 --cluster etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/main',
    because: 'needs three machines and an etcd; packages/db/test/cluster runs such a cluster',
  },
  {
    command: 'millrace db status --url grpc://10.0.0.1:5433,10.0.0.2:5433,10.0.0.3:5433',
    because: 'needs the cluster of the page; packages/db/test/cluster has such clients',
  },
  {
    command: 'npm run failover -- --rounds 20',
    because: 'needs etcd; packages/db/test/cluster/failover.test.ts runs it',
  },
  {
    command: 'npm run simulate -- --component queue --seeds 20',
    instead: 'npm run simulate -- --component queue --seeds 2',
    because: 'packages/queue/test/simulation.test.ts runs many more',
  },
  {
    command: 'npm run simulate -- --component flows --seeds 100',
    instead: 'npm run simulate -- --component flows --seeds 2',
    because: 'packages/queue/test/simulation.test.ts runs many more',
  },
  {
    command: 'npm run fuzz -- --target cron --minutes 10',
    instead: 'npm run fuzz -- --target cron --minutes 0.02',
    because: 'it takes 10 minutes',
  },
  {
    command: 'npm run soak -- --minutes 20',
    instead: 'npm run soak -- --minutes 0.05 --fault-every 0',
    because: 'it takes 20 minutes',
  },
  {
    command: 'npm run release -- --dry-run',
    because: 'test/packages.test.ts runs it, and two at a time would write the same files',
  },
  {
    command: 'npm run test:node -- 22',
    because: 'it is the whole run on another Node, which it downloads first',
  },
  {
    command: 'npm run bench -- engine',
    instead: 'npm run bench -- engine --help',
    because: 'it takes minutes of a quiet machine; test/bench.test.ts runs its shortest form',
  },
  {
    command: 'npm run bench -- db-server --trace',
    instead: 'npm run bench -- db-server --help',
    because: 'test/bench.test.ts runs its shortest form',
  },
  {
    command: 'npm run bench -- workers',
    instead: 'npm run bench -- workers --help',
    because: 'it takes minutes, and needs its peers; test/bench.test.ts runs its shortest form',
  },
  {
    command: 'npm run bench -- queue',
    instead: 'npm run bench -- queue --help',
    because: 'it takes minutes of a quiet machine; test/bench.test.ts runs its shortest form',
  },
  {
    command: 'npx vitest run packages/engine/src/query',
    instead: 'npx vitest list --filesOnly packages/engine/src/query',
    because: 'npm test runs these tests',
  },
  {
    command: 'npx vitest run packages/engine/test/power-cut',
    instead: 'npx vitest list --filesOnly packages/engine/test/power-cut',
    because: 'npm test runs these tests',
  },
  {
    command: "npx vitest run packages/kit -t 'a ULID spells'",
    instead: "npx vitest list packages/kit/src/base/ulid -t 'a ULID spells'",
    because: 'npm test runs these tests',
  },
  {
    command: 'npx vitest run packages/contract',
    instead: 'npx vitest list --filesOnly packages/contract',
    because: 'npm test runs these tests',
  },
  {
    command: 'millrace queue submit mail mail.digest --delay 15m --expires-at 2h --group acme',
    instead: 'millrace queue submit mail mail.digest --delay 1s --expires-at 2h --group acme',
    because: 'the page deletes the queue in the end, which cannot have waiting tasks',
  },
];

export function exceptionOf(command: string): Exception | undefined {
  return exceptions.find((exception) => exception.command === command);
}
