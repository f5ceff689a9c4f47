import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { layoutGraph, type GraphItem, type PlacedNode } from './graph-layout.js';
import { Status, type Tone } from './status.js';
import { useIsNarrow } from './use-is-narrow.js';
import './graph.css';

export interface GraphNode extends GraphItem {
  name: string;
  tone: Tone;
  status: string;
  /** Read out after the status, such as what the node waits for. */
  note?: string;
}

// Two boxes side by side fit a phone.
const box = { width: 160, height: 52 };
const gap = { along: 56, across: 16 };
const edge = 12;
/** Larger graphs render only what is near the visible part. */
const maxWhole = 150;
const overscan = 300;

interface Place {
  x: number;
  y: number;
}

/** Nodes and what comes after what: left to right, or top to bottom on a phone. */
export function Graph({
  label,
  nodes,
  selected,
  onSelect,
}: {
  label: string;
  nodes: readonly GraphNode[];
  selected: string | undefined;
  onSelect: (id: string) => void;
}) {
  const isDown = useIsNarrow();
  // Statuses change often, the graph rarely.
  const shape = JSON.stringify(nodes.map(({ id, after }) => [id, after]));
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- the shape stands for the nodes
  const layout = useMemo(() => layoutGraph(nodes), [shape]);
  const corners = useMemo(
    () => new Map(layout.nodes.map((node) => [node.id, corner(node, isDown)])),
    [layout, isDown],
  );
  const scroller = useRef<HTMLDivElement>(null);
  const isVisible = useVisible(scroller, nodes.length > maxWhole);
  const along = isDown ? box.height : box.width;
  const across = isDown ? box.width : box.height;
  const length = layout.layers * (along + gap.along) - gap.along + 2 * edge;
  const breadth = layout.breadth * (across + gap.across) - gap.across + 2 * edge;
  const size = isDown ? { width: breadth, height: length } : { width: length, height: breadth };
  const curves = { plain: '', selected: '' };
  for (const { from, to, via } of layout.edges) {
    const [start, end] = [corners.get(from)!, corners.get(to)!];
    if (!isVisible(start, end)) continue;
    const isSelected = from === selected || to === selected;
    const stops = [start, ...via.map((place) => corner(place, isDown)), end];
    curves[isSelected ? 'selected' : 'plain'] += line(stops, isDown);
  }
  return (
    <div className="graph" ref={scroller} tabIndex={0} role="group" aria-label={label}>
      <div className="graph-space" style={size}>
        <svg {...size} aria-hidden="true">
          <path className="graph-edge" d={curves.plain} />
          <path className="graph-edge graph-edge-on" d={curves.selected} />
        </svg>
        {nodes.map((node) => {
          const at = corners.get(node.id)!;
          if (node.id !== selected && !isVisible(at, at)) return null;
          const isSelected = node.id === selected;
          return <Box key={node.id} {...{ node, at, isSelected, onSelect }} />;
        })}
      </div>
    </div>
  );
}

interface BoxProps {
  node: GraphNode;
  at: Place;
  isSelected: boolean;
  onSelect: (id: string) => void;
}

/** Rendered again when its node changes, not when the graph scrolls. */
const Box = memo(function Box({ node, at, isSelected, onSelect }: BoxProps) {
  return (
    <button
      type="button"
      className={`graph-node graph-${node.tone}`}
      style={{ left: at.x, top: at.y, ...box }}
      aria-pressed={isSelected}
      title={node.name}
      onClick={() => onSelect(node.id)}
    >
      <span className="ellipsis graph-name">{node.name}</span>
      <Status tone={node.tone}>{node.status}</Status>
      {node.note && <span className="visually-hidden"> {node.note}</span>}
    </button>
  );
});

/** Whether the space between two corners is near the visible part. */
function useVisible(
  scroller: React.RefObject<HTMLDivElement | null>,
  isLimited: boolean,
): (from: Place, to: Place) => boolean {
  const [view, setView] = useState({ left: 0, top: 0, right: 2_000, bottom: 1_200 });
  useEffect(() => {
    const element = scroller.current;
    if (!element || !isLimited) return undefined;
    const read = () => {
      // In steps, so that most scroll events render nothing.
      const step = overscan / 2;
      const left = Math.floor(element.scrollLeft / step) * step;
      const top = Math.floor(element.scrollTop / step) * step;
      const right = left + element.clientWidth + step;
      const bottom = top + element.clientHeight + step;
      setView((before) => {
        const isSame =
          before.left === left &&
          before.top === top &&
          before.right === right &&
          before.bottom === bottom;
        return isSame ? before : { left, top, right, bottom };
      });
    };
    read();
    const resized = new ResizeObserver(read);
    resized.observe(element);
    element.addEventListener('scroll', read, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener('scroll', read);
    };
  }, [scroller, isLimited]);
  return (from, to) =>
    !isLimited ||
    (Math.max(from.x, to.x) + box.width > view.left - overscan &&
      Math.min(from.x, to.x) < view.right + overscan &&
      Math.max(from.y, to.y) + box.height > view.top - overscan &&
      Math.min(from.y, to.y) < view.bottom + overscan);
}

function corner({ layer, place }: PlacedNode, isDown: boolean): Place {
  if (isDown) {
    return {
      x: edge + place * (box.width + gap.across),
      y: edge + layer * (box.height + gap.along),
    };
  }
  return { x: edge + layer * (box.width + gap.along), y: edge + place * (box.height + gap.across) };
}

/** A line from the end of the first place to the start of the last, straight through the others. */
function line(stops: readonly Place[], isDown: boolean): string {
  const point = ({ x, y }: Place, isEnd: boolean): [number, number] =>
    isDown
      ? [x + box.width / 2, y + (isEnd ? box.height : 0)]
      : [x + (isEnd ? box.width : 0), y + box.height / 2];
  return stops
    .slice(1)
    .map((to, n) => {
      const [x1, y1] = point(stops[n]!, true);
      const [x2, y2] = point(to, false);
      const [halfX, halfY] = [(x1 + x2) / 2, (y1 + y2) / 2];
      const bend = isDown ? `${x1} ${halfY} ${x2} ${halfY}` : `${halfX} ${y1} ${halfX} ${y2}`;
      return `${n === 0 ? 'M' : 'L'}${x1} ${y1}C${bend} ${x2} ${y2}`;
    })
    .join('');
}
