import { useRef, type KeyboardEvent, type PointerEvent } from 'react';
import { maxWidth, minWidth } from './column-widths.js';

interface ResizeHandleProps {
  column: string;
  /** The width that was set; undefined when the page chooses. */
  width: number | undefined;
  onWidth: (width: number | undefined) => void;
}

const keyStep = 16;

/** Drags the right edge of a column; arrow keys move it, a double click resets it. */
export function ResizeHandle({ column, width, onWidth }: ResizeHandleProps) {
  const start = useRef<{ x: number; width: number } | undefined>(undefined);
  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = { x: event.clientX, width: widthOf(event.currentTarget) };
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    if (start.current) onWidth(start.current.width + event.clientX - start.current.x);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const step = { ArrowLeft: -keyStep, ArrowRight: keyStep }[event.key];
    if (step === undefined && event.key !== 'Home') return;
    event.preventDefault();
    onWidth(step === undefined ? undefined : (width ?? widthOf(event.currentTarget)) + step);
  };
  return (
    <span
      role="separator"
      aria-orientation="vertical"
      aria-valuemin={minWidth}
      aria-valuemax={maxWidth}
      aria-valuenow={width ?? minWidth}
      aria-valuetext={width === undefined ? 'automatic' : `${width} pixels`}
      tabIndex={0}
      className="resize-handle"
      title={`Width of ${column}: drag or use the arrow keys, double-click to reset`}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => (start.current = undefined)}
      onPointerCancel={() => (start.current = undefined)}
      onDoubleClick={() => onWidth(undefined)}
      onKeyDown={onKeyDown}
    />
  );
}

const widthOf = (handle: HTMLElement): number =>
  handle.parentElement!.getBoundingClientRect().width;
