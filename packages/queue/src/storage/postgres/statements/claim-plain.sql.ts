import { listingStatement } from '../statement.js';
import { claimPicked, pickPlain } from './claim.js';

/** Where no task with a group waits. It notes the turns itself: nothing has to follow it. */
export const claimPlain = listingStatement(
  'claim_plain',
  `WITH ${pickPlain('true')}, ${claimPicked({ isPlain: true })}`,
);
