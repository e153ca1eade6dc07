import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../form/form.tsx';
import { saveFile } from '../../save-file.ts';

interface Props {
  codes: string[];
  /** The address of the account, for the file and the print. */
  email: string;
  onClose(): void;
}

/** New recovery codes: the only time that they are shown. */
export function RecoveryCodes({ codes, email, onClose }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const title = `Recovery codes of ${email}`;
  return (
    <section class="question stack printed" aria-labelledby="recovery-codes">
      <h3 id="recovery-codes" ref={heading} tabIndex={-1}>
        {title}
      </h3>
      <p>
        Each of them logs you in once if you are without your app. They are <strong>shown only now</strong>: keep them
        where you find them without your phone.
      </p>
      <ul class="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="choices">
        <CopyButton text={codes.join('\n')}>Copy codes</CopyButton>
        <Button
          kind="secondary"
          isBusy={false}
          busy=""
          onClick={() => saveFile(new Blob([`${title}\n\n${codes.join('\n')}\n`]), 'recovery-codes.txt')}
        >
          Download
        </Button>
        <Button kind="secondary" isBusy={false} busy="" onClick={() => print()}>
          Print
        </Button>
        <Button isBusy={false} busy="" onClick={onClose}>
          I have kept them
        </Button>
      </div>
    </section>
  );
}

/** Not drawn where the browser lets no page copy: the text can be marked there. */
export function CopyButton({ text, children }: { text: string; children: string }) {
  const [isCopied, setCopied] = useState(false);
  if (!isSecureContext) return null;
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return (
    <>
      <Button kind="secondary" isBusy={false} busy="" onClick={() => void copy()}>
        {children}
      </Button>
      <span class="notice-line" role="status">
        {isCopied ? 'Copied.' : ''}
      </span>
    </>
  );
}
