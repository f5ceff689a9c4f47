import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Failure, Loading } from '../../parts/states.js';
import type { Output } from './output.js';

/** The lines, with the end in view for as long as nobody scrolls away from it. */
export function OutputView({ output: { lines, dropped, isLoading, error } }: { output: Output }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(true);
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 19,
    overscan: 20,
    // Lines keep their size when older ones are let go.
    getItemKey: (index) => index + dropped,
  });
  const total = virtualizer.getTotalSize();
  useLayoutEffect(() => {
    const element = scroller.current;
    if (follows && element) element.scrollTop = element.scrollHeight;
  }, [follows, lines, total]);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const onScroll = () => {
      setFollows(element.scrollHeight - element.scrollTop - element.clientHeight < 40);
    };
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => element.removeEventListener('scroll', onScroll);
  }, [isLoading]);
  if (isLoading) return <Loading rows={6} label="Reading the output" />;
  return (
    <div className="output">
      {error !== undefined && <Failure error={error} />}
      <div ref={scroller} className="output-scroll" tabIndex={0} role="log" aria-label="Output">
        {lines.length === 0 && <p className="muted">Nothing has been written yet.</p>}
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
      {!follows && (
        <button type="button" className="small output-end" onClick={() => setFollows(true)}>
          Jump to the end
        </button>
      )}
    </div>
  );
}
