import type { RootDatabase } from 'lmdb';

/** What lmdb notes of a write; `next` is that of the write after it. */
interface WriteNote {
  next: WriteNote | null;
  /** The first note of the transaction after this one, when that came before this one was done. */
  nextTxn?: WriteNote | undefined;
}

/**
 * lmdb notes its writes in one long list and lets go of the notes in front, but these go on pointing
 * to those behind. So when one note lives long enough to be counted among the old, all that follow
 * do, and only a collection of the whole heap clears them away. Here the list is cut after each
 * commit, at a note that lmdb is done with.
 */
export function cutWrittenList(root: RootDatabase<Buffer, Buffer>): void {
  let last: WriteNote | undefined;
  root.on('aftercommit', ({ next: first }: { next: WriteNote }) => {
    // `first` is where lmdb begins to look: what stood there the last time is behind it now.
    if (last && last !== first) {
      last.next = null;
      if (last.nextTxn) last.nextTxn = undefined;
    }
    last = first;
  });
}
