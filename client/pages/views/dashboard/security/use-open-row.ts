import { useLayoutEffect, useState } from 'preact/hooks';

type RowId = 'email' | 'password' | 'passkeys' | 'app' | 'logins' | 'keys';

/** One row of the Security page. */
export interface RowState {
  id: RowId;
  isOpen: boolean;
  toggle(): void;
  /** Closes the row and focuses its button, unless the user has gone on to another row. */
  close(): void;
}

const rowInUrl = () => location.hash.slice(1);

/** The open row, one at most. It is in the URL: links, reloads and the way back from a provider open it again. */
export function useOpenRow(): (id: RowId) => RowState {
  const [open, setOpen] = useState(rowInUrl);
  // With the first paint, so that no change of the URL is missed.
  useLayoutEffect(() => {
    const follow = () => setOpen(rowInUrl());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);

  const show = (id: string) => {
    setOpen(id);
    history.replaceState(history.state, '', location.pathname + location.search + (id && `#${id}`));
  };
  return (id) => ({
    id,
    isOpen: open === id,
    toggle: () => show(open === id ? '' : id),
    close() {
      if (rowInUrl() !== id) return;
      show('');
      document.getElementById(`${id}-toggle`)?.focus();
    },
  });
}
