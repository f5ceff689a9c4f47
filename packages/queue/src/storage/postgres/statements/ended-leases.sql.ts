import { statement } from '../statement.js';
import { fixedColumns, historyColumn, liveColumns, tasksOf } from './columns.js';

export const endedLeases = statement(
  'ended_leases',
  `WITH past AS (
    SELECT * FROM millrace.live WHERE status = 2 AND lease_expires_at <= $1
    ORDER BY lease_expires_at, id LIMIT $2
  )
  SELECT ${fixedColumns}, ${liveColumns('p')}, ${historyColumn('p')}, t.payload
  FROM past p ${tasksOf('p')}
  ORDER BY p.lease_expires_at, p.id`,
);
