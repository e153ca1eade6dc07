import { useEffect, useState } from 'preact/hooks';
import { Button, SHOWN_MS } from '../../../form/form.tsx';
import { markup, text } from '../../../language/texts.ts';
import { saveFile } from '../../../save-file.ts';
import { Step } from './step.tsx';
import '../../../styles/print.css';

interface Props {
  codes: string[];
  /** The email of the account, for the file and the print. */
  email: string;
  /** The number of the step, while an app is set up. */
  step?: number | undefined;
  onClose(): void;
}

/** New recovery codes, which are never shown again. */
export function RecoveryCodes({ codes, email, step, onClose }: Props) {
  const title = text('dashboard.recoveryCodes.fileTitle', { email });
  return (
    <Step number={step} title={text('dashboard.recoveryCodes.title')} isPrinted>
      <p class="on-paper">{title}</p>
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
          icon="download"
          isBusy={false}
          busy=""
          onClick={() =>
            saveFile(new Blob([`${title}\n\n${codes.join('\n')}\n`]), text('dashboard.recoveryCodes.fileName'))
          }
        >
          {text('dashboard.recoveryCodes.download')}
        </Button>
        <Button kind="secondary" icon="print" isBusy={false} busy="" onClick={() => print()}>
          {text('dashboard.recoveryCodes.print')}
        </Button>
      </div>
      <div class="choices">
        <Button isBusy={false} busy="" onClick={onClose}>
          {text('dashboard.recoveryCodes.close')}
        </Button>
      </div>
    </Step>
  );
}

/** Hidden if the browser does not let pages copy: then the text can be selected. */
export function CopyButton({ content, children }: { content: string; children: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    const timer = isCopied ? setTimeout(() => setCopied(false), SHOWN_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isCopied]);
  if (!isSecureContext) return null;
  const copy = () => {
    // Emptied first: a live region that does not change is not read again.
    setCopied(false);
    return navigator.clipboard.writeText(content).then(
      () => setCopied(true),
      () => undefined,
    );
  };
  return (
    <>
      <Button kind="secondary" icon="copy" isBusy={false} busy="" onClick={() => void copy()}>
        {children}
      </Button>
      <span class="notice-line" role="status">
        {isCopied ? text('dashboard.recoveryCodes.copied') : ''}
      </span>
    </>
  );
}
