import type { Core } from '../../core/core.js';
import { tableNames } from '../../storage/file/tables.js';
import { TableWalker } from '../verify/slices.js';

// LMDB's overhead per row, and the maximum size of a row that shares a page.
const rowHead = 10;
const maxInPage = 2_000;
const pageBytes = 4_096;
const pageHead = 16;

/** Estimated size of a copy of the file. */
export async function estimateBytes(core: Core): Promise<number> {
  const view = core.snapshot();
  const walker = new TableWalker(core, view);
  let pages = 2;
  try {
    for (const table of tableNames) {
      let shared = 0;
      const add = ({ key, value }: { key: Buffer; value: Buffer }) => {
        const size = rowHead + key.length + value.length;
        if (size <= maxInPage) shared += size;
        else {
          shared += rowHead + key.length + 8;
          pages += Math.ceil((value.length + pageHead) / pageBytes);
        }
      };
      await walker.walk(table, add);
      pages += Math.ceil(shared / (pageBytes - pageHead));
    }
    return pages * pageBytes;
  } finally {
    view.done();
  }
}
