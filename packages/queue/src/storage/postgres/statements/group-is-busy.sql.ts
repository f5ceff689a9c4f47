import { statement } from '../connection/statement.js';

export const groupIsBusy = statement(
  'group_is_busy',
  `SELECT EXISTS (
    SELECT 1 FROM millrace.live l JOIN millrace.queues q ON q.no = l.queue_no
    WHERE q.name = $1 AND l.stage = 2 AND l.group_key <> '' AND l.group_key = $2 AND l.id <> $3
  ) OR EXISTS (
    SELECT 1 FROM millrace.live l JOIN millrace.queues q ON q.no = l.queue_no
    WHERE q.name = $1 AND l.stage < 2 AND l.started AND l.group_key <> ''
      AND l.group_key = $2 AND l.id <> $3
  ) AS busy`,
);
