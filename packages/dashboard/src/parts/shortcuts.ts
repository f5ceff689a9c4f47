import { useEffect, useRef } from 'react';
import { Store } from '../api/store.js';

/** One key such as `?`, or a sequence of two: `g f`. */
type Keys = string;

interface Shortcut {
  keys: Keys;
  label: string;
  run: () => void;
}

const sequenceMs = 1200;
const storedName = 'millrace.shortcuts';
const shortcuts = new Store<readonly Shortcut[]>([]);
const areEnabled = new Store(localStorage.getItem(storedName) !== 'off');

/** Binds keys while the component is mounted. The newest binding wins. */
export function useShortcut(keys: Keys, label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const shortcut = { keys, label, run: () => latest.current() };
    shortcuts.set([...shortcuts.value, shortcut]);
    return () => shortcuts.set(shortcuts.value.filter((one) => one !== shortcut));
  }, [keys, label]);
}

/** The active shortcuts, for the help sheet. */
export const useShortcutList = (): readonly Shortcut[] => shortcuts.use();

/** Single keys can interfere with assistive technology, so they can be disabled. */
export function useShortcutsOn(): [boolean, (on: boolean) => void] {
  const set = (next: boolean) => {
    localStorage.setItem(storedName, next ? 'on' : 'off');
    areEnabled.set(next);
  };
  return [areEnabled.use(), set];
}

let first: { key: string; timer: ReturnType<typeof setTimeout> } | undefined;

/** Installs the key listener of the page; call once. */
export function listenForShortcuts(): void {
  document.addEventListener('keydown', (event) => {
    const isChord = event.ctrlKey || event.metaKey || event.altKey;
    if (!areEnabled.value || event.defaultPrevented || isChord) return;
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
    const keys = first ? `${first.key} ${event.key}` : event.key;
    const found = shortcuts.value.findLast((one) => one.keys === keys);
    if (first) clearTimeout(first.timer);
    first = undefined;
    if (found) {
      event.preventDefault();
      found.run();
      return;
    }
    if (shortcuts.value.some((one) => one.keys.startsWith(`${event.key} `))) {
      first = { key: event.key, timer: setTimeout(() => (first = undefined), sequenceMs) };
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
  );
}
