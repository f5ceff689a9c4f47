/**
 * Savings as the command line needs them: it writes to the ledger itself, so that a check is
 * recorded also where no daemon runs.
 */
export { calibrate, type Calibration } from './calibrate.js';
export {
  SavingsRecorder,
  type Compaction,
  type Origin,
  type RecorderParts,
  type Shortening,
} from './recorder.js';
export { runningRecording } from './running.js';
