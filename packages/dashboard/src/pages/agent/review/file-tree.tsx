import type { DiffFile } from './api.js';
import { fileTree, type TreeFolder } from './rows.js';

interface FileTreeProps {
  files: readonly DiffFile[];
  selected: string;
  onSelect: (path: string) => void;
}

const letters: Readonly<Record<DiffFile['status'], string>> = {
  added: 'A',
  modified: 'M',
  deleted: 'D',
  renamed: 'R',
  copied: 'C',
  type_changed: 'T',
};

/** The changed files by folder; a click scrolls to the file. */
export function FileTree({ files, ...rest }: FileTreeProps) {
  return (
    <nav className="diff-tree" aria-label="Changed files">
      <Folder folder={fileTree(files)} {...rest} />
    </nav>
  );
}

interface FolderProps extends Omit<FileTreeProps, 'files'> {
  folder: TreeFolder;
}

function Folder({ folder, selected, onSelect }: FolderProps) {
  return (
    <ul>
      {folder.folders.map((one) => (
        <li key={one.name}>
          <details open>
            <summary title={one.name}>{one.name}/</summary>
            <Folder folder={one} selected={selected} onSelect={onSelect} />
          </details>
        </li>
      ))}
      {folder.files.map((file) => (
        <li key={file.path}>
          <button
            type="button"
            className="diff-file-button"
            aria-current={file.path === selected || undefined}
            title={file.path}
            onClick={() => onSelect(file.path)}
          >
            <span className="muted mono" title={file.status}>
              {letters[file.status]}
            </span>
            <span className="ellipsis">{file.path.split('/').at(-1)}</span>
            <Counts {...file} />
          </button>
        </li>
      ))}
    </ul>
  );
}

export function Counts({ additions, deletions }: Pick<DiffFile, 'additions' | 'deletions'>) {
  return (
    <span className="diff-counts">
      <span className="status-good">+{additions}</span>{' '}
      <span className="status-bad">−{deletions}</span>
    </span>
  );
}
