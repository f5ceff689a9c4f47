import { bigintArray, textArray } from './arrays.js';
import type { Connections } from './connections.js';
import type { Floors } from './floors.js';
import { nextDue, nextDueAbove } from './statements/next-events.sql.js';

interface DueRow {
  name: string;
  due_at: number;
}

/** When the first task of each queue is due that has one. */
export async function readNextDue(
  connections: Connections,
  floors: Floors,
): Promise<Map<string, number>> {
  const queues = floors.queues();
  const numbers = bigintArray(queues.map((queue) => floors.queueNo(queue)!));
  const found = await Promise.all([
    connections.ask<DueRow>(nextDue, [numbers]),
    connections.ask<DueRow>(nextDueAbove, [
      numbers,
      textArray(queues.map((queue) => `{${floors.above(queue).join(',')}}`)),
      bigintArray(queues.map((queue) => floors.scheduledFrom(queue))),
    ]),
  ]);
  return new Map(found.flat().map((row) => [row.name, row.due_at]));
}
