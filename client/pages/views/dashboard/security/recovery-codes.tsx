import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../../form/form.tsx';
import { markup, text } from '../../../language/texts.ts';
import { saveFile } from '../../../save-file.ts';

interface Props {
  codes: string[];
  /** The email of the account, for the file and the print. */
  email: string;
  onClose(): void;
}

/** New recovery codes, which are never shown again. */
export function RecoveryCodes({ codes, email, onClose }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  const title = text('dashboard.recoveryCodes.title', { email });
  return (
    <section class="question stack printed" aria-labelledby="recovery-codes">
      <h3 id="recovery-codes" ref={heading} tabIndex={-1}>
        {title}
      </h3>
      <p>{markup('dashboard.recoveryCodes.explanation', { strong: (label) => <strong>{label}</strong> })}</p>
      <ul class="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="choices">
        <CopyButton content={codes.join('\n')}>{text('dashboard.recoveryCodes.copy')}</CopyButton>
        <Button
          kind="secondary"
          isBusy={false}
          busy=""
          onClick={() =>
            saveFile(new Blob([`${title}\n\n${codes.join('\n')}\n`]), text('dashboard.recoveryCodes.fileName'))
          }
        >
          {text('dashboard.recoveryCodes.download')}
        </Button>
        <Button kind="secondary" isBusy={false} busy="" onClick={() => print()}>
          {text('dashboard.recoveryCodes.print')}
        </Button>
        <Button isBusy={false} busy="" onClick={onClose}>
          {text('dashboard.recoveryCodes.close')}
        </Button>
      </div>
    </section>
  );
}

/** Hidden if the browser does not let pages copy: then the text can be selected. */
export function CopyButton({ content, children }: { content: string; children: string }) {
  const [isCopied, setCopied] = useState(false);
  if (!isSecureContext) return null;
  const copy = () =>
    navigator.clipboard.writeText(content).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return (
    <>
      <Button kind="secondary" isBusy={false} busy="" onClick={() => void copy()}>
        {children}
      </Button>
      <span class="notice-line" role="status">
        {isCopied ? text('dashboard.recoveryCodes.copied') : ''}
      </span>
    </>
  );
}
