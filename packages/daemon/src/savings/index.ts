/**
 * Savings for `ctl`, which appends to the ledger itself, so that checks are recorded without a
 * running daemon.
 */
export { calibrate, type Calibration } from './calibrate.js';
export {
  SavingsRecorder,
  type Compaction,
  type Origin,
  type RecorderParts,
  type Shortening,
} from './recorder.js';
export { runningRecording } from './files.js';
