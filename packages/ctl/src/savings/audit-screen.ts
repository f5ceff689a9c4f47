import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Sheet } from '../render/table.js';
import { cut, printable } from '../render/text.js';
import { exact, percent } from './figures.js';
import { localTime } from './savings-screen.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;
type Sample = DaemonSchema<'SavingsSample'>;

const maxShown = 10;
const linesShown = 8;

/** The newest samples, to judge whether the omitted text mattered. */
export function auditScreen({ samples = [] }: SavingsReport, sheet: Sheet): string {
  if (samples.length === 0) {
    return (
      'No samples are stored. Set `savings_samples: true` in config.yaml and restart the ' +
      'daemon to store them from then on.\n'
    );
  }
  return samples
    .slice(0, maxShown)
    .map((sample) => pair(sample, sheet))
    .join('\n');
}

function pair(sample: Sample, sheet: Sheet): string {
  const { ts, feature, repo, raw_tokens: raw, kept_tokens: shortened } = sample;
  const share = raw === 0 ? 0 : (100 * (raw - shortened)) / raw;
  const figures = `${exact(raw)} tokens raw, ${exact(shortened)} kept, ${percent(share)} saved`;
  const place = repo === null ? '' : `  ${printable(repo)}`;
  const heading = cut(`${localTime(ts)}  ${feature}  ${figures}${place}`, sheet.columns);
  return (
    `${sheet.paint('strong', heading)}\n` +
    excerpt('raw', sample.raw, sheet) +
    excerpt('kept', sample.kept, sheet)
  );
}

function excerpt(name: string, text: string, { columns, paint }: Sheet): string {
  const lines = text.replace(/\n+$/, '').split('\n');
  const shown = lines.length <= linesShown ? lines : lines.slice(-linesShown);
  const hidden = lines.length - shown.length;
  const note = hidden === 0 ? [] : [paint('dim', `(${exact(hidden)} earlier lines)`)];
  const prefix = `  ${name.padEnd(4)} | `;
  const body = [...note, ...shown.map((line) => cut(printable(line), columns - prefix.length))];
  return body.map((line) => `${paint('dim', prefix)}${line}`.trimEnd().concat('\n')).join('');
}
