import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * Takes a file that is dropped anywhere on the page, where the browser would open it instead of the page, or that is pasted.
 * Returns true while one is dragged over the page.
 */
export function useGivenFile(onFile: (file: File) => void): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFile);
  latest.current = onFile;

  useEffect(() => {
    const listening = new AbortController();
    const listen = <Type extends 'dragover' | 'dragleave' | 'drop' | 'paste'>(
      type: Type,
      listener: (event: DocumentEventMap[Type]) => void,
    ) => document.addEventListener(type, listener, { signal: listening.signal });
    const take = (event: Event, { files: [file] }: DataTransfer) => {
      event.preventDefault();
      if (file) latest.current(file);
    };

    listen('dragover', (event) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      setOver(true);
    });
    listen('dragleave', ({ relatedTarget }) => {
      if (!relatedTarget) setOver(false);
    });
    listen('drop', (event) => {
      setOver(false);
      if (event.dataTransfer?.types.includes('Files')) take(event, event.dataTransfer);
    });
    listen('paste', (event) => {
      const { clipboardData } = event;
      // A document on the clipboard is also there as a picture: its text is for the field with the focus.
      if (clipboardData?.files.length && !clipboardData.types.includes('text/plain')) take(event, clipboardData);
    });
    return () => listening.abort();
  }, []);

  return isOver;
}
