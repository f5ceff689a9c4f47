import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { count } from '../../parts/format.js';
import type { FindBody } from './query.js';
import { csvLines, download, exportLines } from './transfer.js';

/** Downloads the records of the query as JSON lines or CSV. */
export function useExport(collection: string, body: FindBody, format: 'jsonl' | 'csv') {
  const [read, setRead] = useState(0);
  const { isPending, isDisabled, mutate } = useAction({
    run: async () => {
      setRead(0);
      const found = await exportLines(collection, body, setRead);
      return { ...found, file: format === 'csv' ? csvLines(found.lines) : found.lines };
    },
    done: ({ lines, isComplete }) => {
      const text = `Exported ${count(lines.length)} records.`;
      return isComplete ? text : `${text} There are more: use ctl db export ${collection}`;
    },
    onDone: ({ file }) => download(`${collection}.${format}`, file),
  });
  return {
    isDisabled,
    mutate,
    text: isPending ? `Read ${count(read)}` : format === 'csv' ? 'Download CSV' : 'Export',
  };
}
