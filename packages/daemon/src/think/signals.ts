import { resetTimeIn } from './reset-time.js';

/** Why a backend refuses work, according to its output. */
export interface Signal {
  kind: SignalKind;
  /** A fixed text; never the program's output, which may name accounts. */
  reason: string;
  /** When the program says that it will work again. */
  resetAt: number | undefined;
}

export type SignalKind = 'rate_limited' | 'spend_limited' | 'unauthenticated';

interface Sign {
  kind: SignalKind;
  reason: string;
  pattern: RegExp;
  /**
   * The program may print this instead of an answer, with exit code 0. Such a pattern matches a
   * complete line, so that an answer about limits is not mistaken for it.
   */
  insteadOfAnswer?: true;
}

const usageLimit: Sign = {
  kind: 'rate_limited',
  reason: 'usage limit reached',
  pattern:
    /^\s*(?:error:\s*)?(?:you(?:'|’)ve (?:hit|reached) your .{0,80}limit\b.{0,200}|(?:claude (?:ai )?)?usage limit reached(?:\|\d{10})?[.!]?\s*)$/im,
  insteadOfAnswer: true,
};

/** Patterns of single command lines, by id. Checked before the common ones. */
const signsById: Readonly<Record<string, readonly Sign[]>> = {
  claude: [
    {
      kind: 'rate_limited',
      reason: 'rate limit rejected the request',
      pattern: /^(?=.*"status"\s*:\s*"rejected")(?=.*"rateLimitType"\s*:)\s*\{.*\}\s*$/m,
      insteadOfAnswer: true,
    },
    {
      kind: 'spend_limited',
      reason: 'credit balance is too low',
      pattern: /^\s*(?:error:\s*)?credit balance is too low\b.{0,100}$/im,
      insteadOfAnswer: true,
    },
    {
      kind: 'unauthenticated',
      reason: 'not logged in',
      pattern:
        /^\s*(?:error:\s*)?(?:invalid api key|not logged in|oauth token .{0,60}expired)\b.{0,120}$/im,
      insteadOfAnswer: true,
    },
    usageLimit,
  ],
  codex: [
    {
      kind: 'rate_limited',
      reason: 'rateLimitReachedType',
      pattern: /^\s*\{.*"rateLimitReachedType"\s*:\s*"[^"]+".*\}\s*$/m,
      insteadOfAnswer: true,
    },
    {
      kind: 'rate_limited',
      reason: 'rateLimitReachedType',
      pattern: /"rateLimitReachedType"\s*:\s*"[^"]+"/,
    },
    usageLimit,
  ],
  gemini: [
    { ...quotaCode('QUOTA_EXHAUSTED'), insteadOfAnswer: true },
    { ...quotaCode('RATE_LIMIT_EXCEEDED'), insteadOfAnswer: true },
    { kind: 'rate_limited', reason: 'QUOTA_EXHAUSTED', pattern: /\bQUOTA_EXHAUSTED\b/ },
    { kind: 'rate_limited', reason: 'RATE_LIMIT_EXCEEDED', pattern: /\bRATE_LIMIT_EXCEEDED\b/ },
  ],
};

/** The code by itself, as an error, or as the reason in JSON: not a sentence about it. */
function quotaCode(code: string): Sign {
  const before = '(?:\\W*|[^\\n]{0,60}\\berror\\b[^\\n]{0,60}|[^\\n]{0,4000}"reason"\\s*:\\s*")';
  const after = '(?:\\s*|[^\\w\\s][^\\n]{0,4000})';
  const pattern = new RegExp(`^${before}${code}${after}$`, 'im');
  return { kind: 'rate_limited', reason: code, pattern };
}

/** The same program under another name. */
const sameSignsAs: Readonly<Record<string, string>> = { agy: 'gemini', qwen: 'gemini' };

/** Patterns that any of them may print with an error. */
const commonSigns: readonly Sign[] = [
  {
    kind: 'spend_limited',
    reason: 'spend limit reached',
    pattern:
      /\b(?:insufficient[_ ](?:quota|credits?|funds|balance)|out of credits|credit balance|payment required|(?:spend(?:ing)?|billing|budget)[_ ](?:hard[_ ])?(?:limit|cap)|billing_hard_limit_reached|(?:status|code|http(?:\/[\d.]+)?|error)[^\w\n]{1,4}(?:(?:status|code|error)[^\w\n]{1,4})?402)\b/i,
  },
  {
    kind: 'rate_limited',
    reason: 'rate limited',
    pattern:
      /\b(?:rate[-_ ]?limit(?:ed|s|ing)?|too many requests|usage limit|quota (?:exceeded|exhausted)|exceeded your (?:current )?quota|RESOURCE_EXHAUSTED|(?:status|code|http(?:\/[\d.]+)?|error)[^\w\n]{1,4}(?:(?:status|code|error)[^\w\n]{1,4})?429)\b/i,
  },
  {
    kind: 'unauthenticated',
    reason: 'no valid login',
    pattern:
      /\b(?:not (?:logged|signed) in|(?:please|must) (?:log|sign) ?in|login required|unauthenticated|unauthori[sz]ed|authentication (?:failed|required|error)|invalid api key|no api key|api key (?:not (?:found|set)|missing)|(?:status|code|http(?:\/[\d.]+)?|error)[^\w\n]{1,4}(?:(?:status|code|error)[^\w\n]{1,4})?401)\b/i,
  },
  usageLimit,
];

/** The end of an output is where a program says why it ends; the rest is the model's. */
const lastLines = 30;
const maxTailCharacters = 8_192;

export interface Ending {
  id: string;
  /** True when the program reports success. */
  succeeded: boolean;
  stdout: string;
  stderr: string;
}

/**
 * Interprets the end of a run. Reported success is believed unless the output ends with a line that
 * only a refusal has; the output of a failed run is searched more widely.
 */
export function signalIn(
  { id, succeeded, stdout, stderr }: Ending,
  now: number,
): Signal | undefined {
  const own = signsById[sameSignsAs[id] ?? id] ?? [];
  // Success without an answer counts as a failure.
  const isAnswer = succeeded && stdout.trim() !== '';
  const signs = isAnswer
    ? [...own, ...commonSigns].filter((sign) => sign.insteadOfAnswer)
    : [...own, ...commonSigns];
  const tails = isAnswer ? [tailOf(stdout, 3)] : [tailOf(stderr), tailOf(stdout)];
  for (const sign of signs) {
    const tail = tails.find((text) => sign.pattern.test(text));
    if (tail === undefined) continue;
    const { kind, reason } = sign;
    const resetAt = kind === 'unauthenticated' ? undefined : resetTimeIn(tail, now);
    return { kind, reason, resetAt };
  }
  return undefined;
}

function tailOf(text: string, lines = lastLines): string {
  const tail = text.slice(-maxTailCharacters).trimEnd().split('\n');
  return tail.slice(-lines).join('\n');
}
