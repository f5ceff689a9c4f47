import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Failure, Loading } from '../../parts/states.js';
import type { Output } from './output.js';

/** The output; follows the end until the user scrolls up. */
export function OutputView({ output: { lines, dropped, isLoading, error } }: { output: Output }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isFollowing, setIsFollowing] = useState(true);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 19,
    overscan: 20,
    // Keys are stable when old lines are dropped.
    getItemKey: (index) => index + dropped,
  });
  const total = virtualizer.getTotalSize();
  useLayoutEffect(() => {
    const element = scroller.current;
    if (isFollowing && element) element.scrollTop = element.scrollHeight;
  }, [isFollowing, lines, total]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const onScroll = () => {
      setIsFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < 40);
    };
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => element.removeEventListener('scroll', onScroll);
  }, [isLoading]);
  if (isLoading) return <Loading rows={6} label="Loading output" />;
  return (
    <div className="output">
      {error !== undefined && <Failure error={error} />}
      <div ref={scroller} className="output-scroll" tabIndex={0} role="log" aria-label="Output">
        {lines.length === 0 && <p className="muted">No output yet.</p>}
        <div className="output-lines" style={{ height: total }}>
          {virtualizer.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={virtualizer.measureElement}
              data-index={item.index}
              className="output-line"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {lines[item.index] || ' '}
            </div>
          ))}
        </div>
      </div>
      {!isFollowing && (
        <button type="button" className="small output-end" onClick={() => setIsFollowing(true)}>
          Jump to end
        </button>
      )}
    </div>
  );
}
