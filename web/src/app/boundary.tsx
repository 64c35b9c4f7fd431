// A part of the page whose failure leaves the other parts as they are.

import { Component, type ComponentChildren } from "preact";

export class Boundary extends Component<{ name: string; children: ComponentChildren }, { failure?: string }> {
  override state: { failure?: string } = {};

  static override getDerivedStateFromError(error: unknown) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: unknown): void {
    console.error(error);
  }

  render() {
    const { failure } = this.state;
    if (failure === undefined) return this.props.children;
    return (
      <p class="failure" role="alert">
        {this.props.name} failed: {failure} <button onClick={() => this.setState({})}>Try again</button>
      </p>
    );
  }
}
