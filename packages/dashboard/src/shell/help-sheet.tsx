import { Check } from '../parts/controls.js';
import { Dialog } from '../parts/dialog.js';
import { useShortcutList, useShortcutsOn } from '../parts/shortcuts.js';

/** All active keyboard shortcuts. */
export function HelpSheet({ onClose }: { onClose: () => void }) {
  const shortcuts = useShortcutList();
  const [areEnabled, setEnabled] = useShortcutsOn();
  const unique = new Map(shortcuts.map((one) => [one.keys, one]));
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <Check label="Use keyboard shortcuts" checked={areEnabled} onChange={setEnabled} />
      <dl className="keys">
        {[...unique.values()].map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Ctrl</kbd>
            <kbd>K</kbd>
          </dt>
          <dd>Go to a queue, task, agent, collection or action</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close a dialog</dd>
        </div>
      </dl>
    </Dialog>
  );
}
