import { checkRules, noise, type Rules } from '../check/rules.js';

const useless = [
  /^(?:remote: )?(?:Enumerating|Counting|Compressing|Writing|Receiving|Unpacking|Resolving|Updating files|Delta compression|Total \d)/,
  /^ (?:create|delete) mode \d+ /,
  /^ (?:rename|copy) .+ \(\d+%\)$/,
  /^ mode change \d+ => \d+ /,
  // One file of a diffstat; the total line is kept.
  /^ .+ \| +(?:\d+ [+-]*|\d+|Bin\b.*)$/,
  /^remote:\s*$/,
];

const telling = [
  /^\[.+ [0-9a-f]{7,}\] /,
  /^ \d+ files? changed\b/,
  /^To \S/,
  / -> /,
  /\bup to date\b/i,
  /^(?:Updating|Fast-forward|Merge made|Successfully rebased)\b/,
];

/** Rules for the output of commit, push and pull, and of hooks, which run builds and tests. */
export const gitRules: Rules = {
  maxOthers: 20,
  worthOf(line) {
    const worth = checkRules.worthOf(line);
    // A file in a diffstat may be called errors.ts.
    if (useless.some((pattern) => pattern.test(line))) return noise;
    if (telling.some((pattern) => pattern.test(line))) return { ...worth, isSummary: true };
    return worth;
  },
};
