/** How to classify the output lines of a command. */
export interface Worth {
  /** Lines about failures: kept, with some context. */
  readonly isFailure: boolean;
  /** Summary lines: the last ones are kept. */
  readonly isSummary: boolean;
  /** Noise: never kept. */
  readonly isNoise: boolean;
}

export interface Rules {
  worthOf(line: string): Worth;
  /** Number of other lines to keep. */
  readonly maxOthers: number;
}

const passed = [
  /^\s*(?:[✓✔√]|PASS\b|ok \d+|--- PASS|\[PASS\]|\[ *OK *\])/,
  /\.\.\. ok$/,
  /\bPASSED\b/,
];

/** "0 errors" is not a failure. */
const goodNews =
  /\b(?:0|no|without) (?:errors?|failures?|failed|failing|problems?)\b|\b(?:errors?|failures?|failed)\s*[:=]\s*0\b/gi;

const failed = [
  /\b(?:error|fail|fault|panic|exception|traceback|assertion|denied|conflict)(?:s|ed|ing|ure|ures|ked)?\b/i,
  /\b(?:fatal|aborted|killed|timed out|core dumped|cannot find|not found|undefined reference)\b/i,
  /\b\w+(?:Error|Exception|Failure)\b/,
  /^\s*(?:[✗✘✖×❌]|not ok\b|--- FAIL|E {3}|npm ERR!)/,
];

const summary = [
  /\b\d+ (?:tests?|specs?|suites?|examples?|assertions?|passed|passing|failed|failing|failures?|skipped|pending|errors?|warnings?|problems?)\b/i,
  /^\s*(?:tests?|test files|test suites|suites|snapshots|duration|total time|time|ran|total)(?::| +\d)/i,
  /^test result:/,
  /\bBUILD (?:SUCCESS|SUCCESSFUL|FAILED|FAILURE)\b/,
  /^(?:ok|FAIL)\s+\S+\s+[\d.]+s/,
  /\b(?:compiled|built|finished|completed|done)\b.* (?:in|after) .*\d/i,
  /^=+ .+ =+$/,
];

/** Rules for builds, tests and linters. */
export const checkRules: Rules = {
  maxOthers: 0,
  worthOf(line) {
    const isSummary = summary.some((pattern) => pattern.test(line));
    if (!isSummary && passed.some((pattern) => pattern.test(line))) return noise;
    const sober = line.replaceAll(goodNews, '');
    return { isFailure: failed.some((pattern) => pattern.test(sober)), isSummary, isNoise: false };
  },
};

export const noise: Worth = { isFailure: false, isSummary: false, isNoise: true };
