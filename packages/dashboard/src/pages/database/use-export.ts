import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { count } from '../../parts/format.js';
import type { FindBody } from './query.js';
import { download, exportLines } from './transfer.js';

/** Downloads the records of the query as JSON lines. */
export function useExport(collection: string, body: FindBody) {
  const [read, setRead] = useState(0);
  const { isPending, mutate } = useAction({
    run: () => {
      setRead(0);
      return exportLines(collection, body, setRead);
    },
    done: ({ lines, isComplete }) => {
      const text = `Exported ${count(lines.length)} records.`;
      return isComplete ? text : `${text} There are more: use ctl db export ${collection}`;
    },
    onDone: ({ lines }) => download(`${collection}.jsonl`, lines),
  });
  return { isPending, mutate, text: isPending ? `Read ${count(read)}` : 'Export' };
}
