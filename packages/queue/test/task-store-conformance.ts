import { describe } from 'vitest';
import { auditTests } from './task-store/audit.js';
import { changeTests } from './task-store/changes.js';
import { claimTests } from './task-store/claims.js';
import { deadLetterTests } from './task-store/dead-letters.js';
import { flowTests } from './task-store/flows.js';
import { eventTests } from './task-store/events.js';
import { optionTests } from './task-store/options.js';
import { listTests } from './task-store/lists.js';
import { groupTests } from './task-store/groups.js';
import { historyTests } from './task-store/history.js';
import { queueTests } from './task-store/queues.js';
import { resultTests } from './task-store/results.js';
import { uniqueKeyTests } from './task-store/unique-keys.js';
import { recordTests } from './task-store/records.js';
import { scheduleTests } from './task-store/schedules.js';
import { settlementTests } from './task-store/settlements.js';
import { submitTests } from './task-store/submits.js';
import { upkeepTests } from './task-store/upkeep.js';
import { workerTests } from './task-store/workers.js';
import { Fixture, type StoreMaker } from './task-store/fixture.js';

/** Conformance tests for task stores; `maker` creates an empty store for each test. */
export function testTaskStore(
  name: string,
  maker: StoreMaker,
  options: { tags?: string } = {},
): void {
  describe(`${name} as a task store`, options, () => {
    const fixture = new Fixture(maker);
    queueTests(fixture);
    submitTests(fixture);
    claimTests(fixture);
    groupTests(fixture);
    settlementTests(fixture);
    deadLetterTests(fixture);
    upkeepTests(fixture);
    auditTests(fixture);
    recordTests(fixture);
    scheduleTests(fixture);
    workerTests(fixture);
    listTests(fixture);
    changeTests(fixture);
    resultTests(fixture);
    uniqueKeyTests(fixture);
    historyTests(fixture);
    flowTests(fixture);
    eventTests(fixture);
    optionTests(fixture);
  });
}
