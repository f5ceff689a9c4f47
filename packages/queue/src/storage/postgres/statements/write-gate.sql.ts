import { statement } from '../statement.js';

export const writeGate = statement(
  'write_gate',
  'UPDATE millrace.gates SET turns = $2, starts = $3 WHERE queue_no = $1',
);
