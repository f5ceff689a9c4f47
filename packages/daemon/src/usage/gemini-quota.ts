import {
  listOf,
  percentUsedOf,
  recordOf,
  textOf,
  timeOfText,
  type UsageWindow,
} from './adapter.js';

export const quotaWindowNames = [
  { scope: 'gemini', label: 'Gemini models' },
  { scope: 'non-gemini', label: 'Other models' },
] as const;

interface Bucket {
  readonly scope: 'gemini' | 'non-gemini';
  readonly model: string | null;
  readonly usedPercent: number | null;
  readonly resetsAt: number | null;
}

/**
 * The two windows of a quota answer, which lists `buckets` of single models or `groups` of them.
 * Of a family the most used bucket counts, with its own reset. Undefined when no bucket has a
 * figure.
 */
export function quotaWindows(answer: unknown): UsageWindow[] | undefined {
  const all = bucketsIn(answer);
  if (!all.some(({ usedPercent }) => usedPercent !== null)) return undefined;
  return quotaWindowNames.map(({ scope, label }) => {
    const buckets = all.filter((bucket) => bucket.scope === scope);
    const most = highestUse(buckets);
    const models = sortedTexts(buckets.map(({ model }) => model));
    return {
      scope,
      label,
      usedPercent: most?.usedPercent ?? null,
      resetsAt: most?.resetsAt ?? null,
      modelFamilies: buckets.length > 0 && scope === 'gemini' ? ['gemini'] : familiesOf(models),
      models,
    };
  });
}

function bucketsIn(answer: unknown): Bucket[] {
  const whole = recordOf(answer);
  // The language server of the same maker wraps its answer once more.
  const body = recordOf(whole?.['response']) ?? whole;
  const single = (listOf(body?.['buckets']) ?? []).map((bucket) => bucketOf(bucket, ''));
  const grouped = (listOf(body?.['groups']) ?? []).flatMap((group) => {
    const fields = recordOf(group);
    const name = textOf(fields?.['displayName']) ?? textOf(fields?.['groupId']) ?? '';
    return (listOf(fields?.['buckets']) ?? []).map((bucket) => bucketOf(bucket, name));
  });
  return [...single, ...grouped].filter((bucket) => bucket !== undefined);
}

function bucketOf(value: unknown, group: string): Bucket | undefined {
  const fields = recordOf(value);
  if (!fields) return undefined;
  const model = textOf(fields['modelId']);
  const names = [model ?? '', group, textOf(fields['bucketId']) ?? ''];
  // Without a name the quota cannot be assigned.
  const name = names.find((each) => each !== '');
  if (name === undefined) return undefined;
  return {
    scope: /gemini/i.test(name) ? 'gemini' : 'non-gemini',
    model: model !== null && modelName.test(model) ? model : null,
    usedPercent: percentUsedOf(fields['remainingFraction']),
    resetsAt: timeOfText(fields['resetTime']),
  };
}

/** Other values in place of a model name are not shown. */
const modelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

function highestUse(buckets: readonly Bucket[]): Bucket | undefined {
  let most: Bucket | undefined;
  for (const bucket of buckets) {
    if (bucket.usedPercent === null) continue;
    if (most === undefined || isWorse(bucket, most)) most = bucket;
  }
  return most;
}

/** Of two that are used alike, the one that lasts longer. */
function isWorse(a: Bucket, b: Bucket): boolean {
  if (a.usedPercent !== b.usedPercent) return a.usedPercent! > b.usedPercent!;
  return (a.resetsAt ?? 0) > (b.resetsAt ?? 0);
}

/** `claude` of `claude-sonnet-4-5`. */
function familiesOf(models: readonly string[] | null): string[] | null {
  return sortedTexts((models ?? []).map((model) => /^[A-Za-z]+/.exec(model)?.[0].toLowerCase()));
}

function sortedTexts(texts: readonly (string | null | undefined)[]): string[] | null {
  const known = new Set(texts.filter((text) => typeof text === 'string'));
  return known.size === 0 ? null : [...known].sort();
}
