import type { StoredRecord } from '@millrace/db';
import type { Outlet } from '../base/terminal.js';
import { renderTable } from '../render/table.js';
import { printable } from '../render/text.js';

/** One record: its system fields, then its document as indented JSON. */
export function recordSheet(record: StoredRecord<object>, out: Outlet): string {
  const facts: [string, string][] = [['id', record.id]];
  if (record.key !== '') facts.push(['key', record.key]);
  facts.push(['rev', String(record.rev)]);
  facts.push(['created', record.createdAt.toISOString()]);
  if (record.rev > 1) facts.push(['updated', record.updatedAt.toISOString()]);
  if (record.expiresAt) facts.push(['expires', record.expiresAt.toISOString()]);
  const table = renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], facts, out);
  const lines = JSON.stringify(record.data, null, 2).split('\n').map(printable);
  return `${table}${lines.join('\n')}\n`;
}
