import { find, type FindEnd } from './find.js';
import type { CheckedFind } from './query.js';
import type { FoundRecord } from './page.js';
import type { QuerySource } from './source.js';

/** As `find`, everything in one piece. */
export async function findAll(
  source: QuerySource,
  query: CheckedFind,
): Promise<FindEnd & { records: FoundRecord[] }> {
  const records: FoundRecord[] = [];
  for await (const batch of find(source, query)) {
    for (const record of batch.records) records.push(record);
    if (batch.end) return { ...batch.end, records };
  }
  throw new Error('a find ended without its last batch');
}
