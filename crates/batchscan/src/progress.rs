//! Progress bars on standard error. Nothing is shown if it is not a terminal.

use std::sync::Arc;
use std::time::Duration;

use batchscan_store::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) fn progress_bar(message: &str, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("━╸─"));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A callback for the store that moves the bar.
pub(crate) fn callback(bar: &ProgressBar) -> Progress {
    let bar = bar.clone();
    Arc::new(move |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })
}
