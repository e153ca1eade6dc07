import type { ComponentChildren } from 'preact';

/** Controls of one kind. */
export const Group = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <div class="stack design">
    <h2>{title}</h2>
    {children}
  </div>
);
