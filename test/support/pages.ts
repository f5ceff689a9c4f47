/**
 * Which test runs the commands of which page. Commands of the repository itself (`npm`, `npx`,
 * `node`) are run by test/docs-repository.test.ts, whichever page has them.
 */
export const pagesOfServers = [
  'README.md',
  'docs/tutorials/quickstart.md',
  'docs/how-to/run-in-production.md',
  'docs/how-to/upgrade.md',
  'docs/how-to/monitor.md',
  'docs/how-to/track-spend.md',
  'docs/how-to/use-the-command-line.md',
  'docs/how-to/run-agents.md',
  'docs/how-to/add-your-own-cli.md',
  'docs/how-to/run-pipelines.md',
  'docs/how-to/run-a-plan.md',
  'docs/how-to/queue-work-for-agents.md',
  'docs/how-to/keep-contexts-small.md',
  'docs/how-to/get-notified.md',
  'docs/how-to/react-to-changes.md',
  'docs/how-to/answer-agents-from-your-phone.md',
  'docs/tutorials/three-agents.md',
  'docs/how-to/track-branches.md',
  'docs/how-to/review-and-merge.md',
  'docs/how-to/spread-agents-over-machines.md',
  'docs/how-to/coming-from-bullmq.md',
  'docs/how-to/coming-from-sqlite.md',
  'docs/how-to/coming-from-claude-squad.md',
];

/** One story over several pages, in this order. */
export const pagesOfQueue = [
  'docs/tutorials/first-task.md',
  'docs/how-to/submit-tasks.md',
  'docs/how-to/see-what-a-queue-is-doing.md',
  'docs/how-to/follow-tasks.md',
  'docs/how-to/cancel-and-re-run.md',
  'docs/how-to/wait-for-a-result.md',
  'docs/how-to/handle-dead-tasks.md',
  'docs/how-to/schedule-work.md',
  'docs/how-to/configure-a-queue.md',
  'docs/how-to/run-the-queue-on-postgresql.md',
];

export const pagesOfDatabase = [
  'docs/how-to/import-and-export.md',
  'docs/how-to/model-and-validate-records.md',
  'docs/how-to/write-many-records.md',
  'docs/how-to/restore-to-a-point-in-time.md',
  'docs/how-to/run-database-followers.md',
  'docs/how-to/run-three-nodes.md',
];

/** Pages whose TypeScript is one program that prints what its comments say. */
export const programPages = [
  'docs/tutorials/first-database.md',
  'docs/how-to/query-records.md',
  'docs/how-to/aggregate-records.md',
  'docs/how-to/search-records.md',
  'docs/how-to/write-safely.md',
  'docs/how-to/update-with-operators.md',
  'docs/how-to/model-and-validate-records.md',
  'docs/how-to/write-many-records.md',
  'docs/how-to/migrate-documents.md',
  'docs/how-to/watch-changes.md',
  'docs/how-to/back-up-a-database.md',
  'docs/how-to/connect-to-a-database-server.md',
  'docs/how-to/wait-for-a-person.md',
  'docs/how-to/fan-out-and-in.md',
  'docs/how-to/undo-with-compensation.md',
  'docs/how-to/change-a-running-flow.md',
];

/** What a new user reads first; `npm run test:campaigns` runs the other pages. */
export const pagesReadFirst = [
  'README.md',
  'docs/tutorials/quickstart.md',
  'docs/tutorials/first-task.md',
  'docs/tutorials/first-worker.md',
  'docs/tutorials/first-database.md',
  'docs/tutorials/first-flow.md',
];

/** The options of a test that runs what a page shows. */
export function testOptionsOf(page: string): { tags?: string } {
  return pagesReadFirst.includes(page) ? {} : { tags: 'campaign-docs' };
}

/** They have commands of the repository alone. */
export const pagesOfRepository = [
  'CONTRIBUTING.md',
  'docs/explanation/durability.md',
  'docs/explanation/performance.md',
  'docs/explanation/reliability.md',
  'docs/tutorials/first-worker.md',
  'docs/how-to/test-your-handlers.md',
  'examples/embedded/README.md',
  'examples/in-process/README.md',
];

/** What is run once, whichever page has it, and needs no server. */
export function isOfRepository(command: string): boolean {
  return command !== 'npm start' && /^(?:npm|npx|node) |^bin\/ctl demo$/.test(command);
}
